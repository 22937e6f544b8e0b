// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>
#include <kernels/cpu/against_reference.hpp>
#include <kernels/cpu/blocked_images.hpp>
#include <kernels/cpu/hand_run.hpp>

#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.channel_blocks") {

namespace {

std::vector<std::string> failures(kernel_table table) {
  reference_check check(std::move(table));
  std::vector<std::string> all;
  REQUIRE_FALSE(image_cases().empty());
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

std::vector<float> plain_elements(const variable& var, arena& memory) {
  variable plain;
  plain.set(make_cpu_device(0)->to_host(var.as_tensor(), memory));
  return elements(plain);
}

bool near(const std::vector<float>& values, const std::vector<float>& others) {
  return std::ranges::equal(values, others, [](float a, float b) {
    return std::abs(a - b) <= 1e-4f * std::max(1.0f, std::abs(a));
  });
}

/// An op whose input X is in blocks of 8 channels.
struct blocked_run : hand_run {
  explicit blocked_run(const char* type) : hand_run(type) {
    variable& x = input("X", images, counted(images));
    x.set(in_blocks(x.as_tensor(), {8}, memory->memory()));
  }
  std::unique_ptr<device> memory = make_cpu_device(0);
};

} // namespace

TEST_CASE("ops on images agree with the reference") {
  for (const auto& failure : failures(cpu_kernels()))
    FAIL_CHECK(failure);
}
TEST_CASE("ops agree with the reference if their inputs lie in blocks") {
  for (const std::int64_t block : {8, 16})
    for (const auto& failure :
         failures(with_blocked_inputs(cpu_kernels(), {block})))
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
  const tensor blocked = in_blocks(plain, {8}, device->memory());
  CHECK(blocked.format()->name() == "nChw8c");
  CHECK(blocked.data<float>()[1] == 4.0f);
  const tensor back = device->to_host(blocked, device->memory());
  CHECK(std::equal(values.begin(), values.end(), back.data<float>()));
}
TEST_CASE("layouts are equal if block and shape are") {
  const auto blocked = cpu::channel_blocks(images, {8});
  CHECK(blocked->equals(*cpu::channel_blocks(images, {8})));
  CHECK_FALSE(blocked->equals(*cpu::channel_blocks(images, {16})));
  CHECK_FALSE(blocked->equals(*cpu::channel_blocks({2, 16, 2, 2}, {8})));
  CHECK(cpu::channel_blocks(images, {}) == nullptr);
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
TEST_CASE("a result in the memory of the last one has no levels of that") {
  blocked_run run("relu");
  variable& out = run.output("Out");
  run.run();
  out.as_tensor().set_levels(std::make_shared<const lod>(lod{{0, 1}}));
  run.run();
  CHECK(out.as_tensor().levels() == nullptr);
}
TEST_CASE("an image in blocks and a plain one add up element by element") {
  blocked_run run("elementwise_add");
  run.input("Y", images, counted(images));
  variable& out = run.output("Out");
  run.run();
  const auto sums = plain_elements(out, run.memory->memory());
  for (std::size_t i = 0; i < sums.size(); ++i)
    CHECK(sums[i] == 2.0f * static_cast<float>(i));
}
TEST_CASE("a NaN in a window wins its maximum and gets the gradient") {
  const shape dims{1, 16, 2, 8};
  auto pixels = counted(dims);
  pixels[1] = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t block : {0, 8}) {
    CAPTURE(block);
    const attribute_map attributes{{"ksize", ints{2, 2}},
                                   {"strides", ints{2, 2}}};
    auto device = make_cpu_device(0);
    hand_run forward("pool2d", attributes);
    hand_run backward("pool2d_grad", attributes);
    variable& x = forward.input("X", dims, pixels);
    x.set(block > 0 ? in_blocks(x.as_tensor(), {block}, device->memory())
                    : x.as_tensor());
    variable& out = forward.output("Out");
    forward.run();
    const auto maxima = plain_elements(out, device->memory());
    CHECK(std::isnan(maxima[0]));
    CHECK(maxima[1] == 11.0f);
    backward.input("X", x);
    backward.input("Out", out);
    variable& given =
      backward.input("Out@GRAD", {1, 16, 1, 4}, counted({1, 16, 1, 4}));
    given.as_tensor().data<float>()[0] = 5.0f;
    variable& dx = backward.output("X@GRAD");
    backward.run();
    const auto gradient = plain_elements(dx, device->memory());
    CHECK(gradient[1] == 5.0f);
    CHECK(gradient[9] == 0.0f);
    CHECK(gradient[11] == 1.0f);
  }
}
TEST_CASE("an op that knows no blocks gives a plain result") {
  blocked_run run("softmax");
  variable& out = run.output("Out");
  run.run();
  CHECK(out.as_tensor().is_plain());
}
TEST_CASE("a convolution's gradients do not depend on how its images lie") {
  const shape dims{1, 16, 3, 8};
  hand_run run("conv2d_grad", {{"paddings", ints{1, 1}}, {"groups", 4}});
  variable& x = run.input("Input", dims, counted(dims));
  run.input("Filter", {16, 4, 3, 3}, counted({16, 4, 3, 3}));
  variable& dout = run.input("Output@GRAD", dims, counted(dims));
  variable& dx = run.output("Input@GRAD");
  variable& dw = run.output("Filter@GRAD");
  auto device = make_cpu_device(0);
  const tensor plain_x = x.as_tensor(), plain_dout = dout.as_tensor();
  run.run();
  const auto expected_dx = elements(dx), expected_dw = elements(dw);
  for (const auto& [x_block, dout_block] :
       {std::pair{16, 0}, {16, 16}, {16, 8}, {0, 8}, {8, 8}}) {
    CAPTURE(x_block);
    CAPTURE(dout_block);
    const auto lay = [&](const tensor& image, int block) {
      return block > 0 ? in_blocks(image, {block}, device->memory()) : image;
    };
    x.set(lay(plain_x, x_block));
    dout.set(lay(plain_dout, dout_block));
    run.run();
    CHECK(near(plain_elements(dx, device->memory()), expected_dx));
    CHECK(near(elements(dw), expected_dw));
  }
}
TEST_CASE("a batch norm's gradients do not depend on how its images lie") {
  const shape dims{2, 16, 2, 3};
  hand_run run("batch_norm_grad");
  variable& x = run.input("X", dims, counted(dims));
  variable& dy = run.input("Y@GRAD", dims, counted(dims));
  for (const char* slot : {"Scale", "SavedMean", "SavedVariance"})
    run.input(slot, {16}, counted({16}));
  variable& dx = run.output("X@GRAD");
  auto device = make_cpu_device(0);
  const tensor plain_x = x.as_tensor(), plain_dy = dy.as_tensor();
  run.run();
  const auto expected = elements(dx);
  x.set(in_blocks(plain_x, {8}, device->memory()));
  run.run();
  CHECK(near(plain_elements(dx, device->memory()), expected));
  x.set(plain_x);
  dy.set(in_blocks(plain_dy, {8}, device->memory()));
  run.run();
  CHECK(near(plain_elements(dx, device->memory()), expected));
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
