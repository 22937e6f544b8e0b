// SPDX-License-Identifier: Apache-2.0
#include "against_reference.hpp"
#include "blocked_images.hpp"
#include "hand_run.hpp"

#include <kernels/cases/cases.hpp>

#include <troupe/kernels/cpu/channel_blocks.hpp>
#include <troupe/kernels/cpu_kernel_options.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace troupe::test {

namespace {

std::vector<std::string> failures(kernel_table table) {
  reference_check check(std::move(table));
  std::vector<std::string> all;
  for (const auto& c : image_cases())
    for (auto& failure : check.failures(c))
      all.push_back(std::move(failure));
  return all;
}

const shape images{1, 16, 2, 2};

std::vector<float> counted(const shape& dims) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < dims.numel(); ++i)
    values.push_back(static_cast<float>(i));
  return values;
}

/// An op whose input X is in blocks of 8 channels.
struct blocked_run : hand_run {
  explicit blocked_run(const char* type) : hand_run(type) {
    variable& x = input("X", images, counted(images));
    x.set(in_blocks(x.as_tensor(), 8, memory->memory()));
  }
  std::unique_ptr<device> memory = make_cpu_device(0);
};

} // namespace

TEST_SUITE("kernels.cpu.channel_blocks") {
TEST_CASE("ops on images agree with the reference") {
  for (const auto& failure : failures(cpu_kernels()))
    FAIL_CHECK(failure);
}
TEST_CASE("ops agree with the reference if their inputs lie in blocks") {
  for (const std::int64_t block : {8, 16})
    for (const auto& failure :
         failures(with_blocked_inputs(cpu_kernels(), block)))
      FAIL_CHECK("blocks of " << block << ": " << failure);
}

TEST_CASE("convolutions agree with the reference without Winograd's method") {
  const auto direct = cpu_kernels({.winograd = false});
  for (const auto& failure : failures(direct))
    FAIL_CHECK(failure);
}

TEST_CASE("a blocked tensor has the plain one's elements") {
  auto device = make_cpu_device(0);
  auto plain = tensor::make(device->memory(), images, dtype::float32);
  const auto values = counted(images);
  std::copy(values.begin(), values.end(), plain.data<float>());
  const tensor blocked = in_blocks(plain, 8, device->memory());
  CHECK(blocked.format()->name() == "nChw8c");
  CHECK(blocked.data<float>()[1] == 4.0f);
  const tensor back = device->to_host(blocked, device->memory());
  CHECK(std::equal(values.begin(), values.end(), back.data<float>()));
}
TEST_CASE("layouts are equal if block and shape are") {
  const auto blocked = cpu::channel_blocks(images, 8);
  CHECK(blocked->equals(*cpu::channel_blocks(images, 8)));
  CHECK_FALSE(blocked->equals(*cpu::channel_blocks(images, 16)));
  CHECK_FALSE(blocked->equals(*cpu::channel_blocks({2, 16, 2, 2}, 8)));
  CHECK(cpu::channel_blocks(images, 0) == nullptr);
  CHECK_FALSE(cpu::fits_blocks({1, 12, 2, 2}, 8));
  CHECK_FALSE(cpu::fits_blocks({16, 16}, 8));
}

TEST_CASE("an activation hands blocks on and writes in place") {
  blocked_run run("relu");
  variable& out = run.output("Out");
  run.run();
  CHECK(cpu::block_of(out.as_tensor()) == 8);
  const auto* memory = memory_of(out);
  run.run();
  CHECK(memory_of(out) == memory);
}
TEST_CASE("shared blocks are not written over") {
  blocked_run run("relu");
  variable& out = run.output("Out");
  run.run();
  const tensor kept = out.as_tensor().share();
  run.run();
  CHECK(memory_of(out) != kept.raw());
}
TEST_CASE("an op that knows no blocks gives a plain result") {
  blocked_run run("softmax");
  variable& out = run.output("Out");
  run.run();
  CHECK(out.as_tensor().is_plain());
}
TEST_CASE("a convolution of blocks makes blocks") {
  hand_run run("conv2d", {{"paddings", ints{1, 1}}});
  run.input("Input", {1, 16, 4, 4}, counted({1, 16, 4, 4}));
  run.input("Filter", {16, 16, 3, 3}, counted({16, 16, 3, 3}));
  variable& out = run.output("Output");
  run.run();
  CHECK(out.as_tensor().format() != nullptr);
}
} // TEST_SUITE("kernels.cpu.channel_blocks")

} // namespace troupe::test
