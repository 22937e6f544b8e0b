// SPDX-License-Identifier: Apache-2.0
// Images that lie in memory rounded to bfloat16, beside the same values in
// float32.
#include <kernels/cases/cases.hpp>
#include <kernels/cpu/blocked_images.hpp>
#include <kernels/cpu/hand_run.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>
#include <support/skip_case.hpp>

#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.rounded_images") {

namespace {

using cpu::image_format;

constexpr image_format rounded(std::int64_t block) {
  return {block, precision::bfloat16};
}

/// Of the largest magnitude: half a unit of the last of eight bits, and twice
/// of that where a gradient reads what was rounded.
constexpr double rounding = 1.0 / 128;

const shape images{2, 16, 3, 3};

std::vector<float> values_for(const shape& dims, std::uint64_t seed) {
  const auto drawn = random_values(dims, seed);
  return {drawn.elements.begin(), drawn.elements.end()};
}

/// The case and its gradient, as far as it has one.
std::vector<op_case> both_ways(const op_case& c) {
  if (!c.gradient)
    return {c};
  return {c, backward_of(c, run_op(cpu_kernels(), c))};
}

/// Ops that take rounded images give what they give for float32 ones, but for
/// the rounding; both ways.
void check_rounded_inputs(const kernel_table& table, std::int64_t block,
                          const op_case& c) {
  const auto wide = with_rounded_inputs(table, {block});
  const auto narrow = with_rounded_inputs(table, rounded(block));
  for (const auto& each : both_ways(c)) {
    CAPTURE(block);
    CAPTURE(describe(each));
    CHECK(difference(run_op(narrow, each), run_op(wide, each), rounding) == "");
  }
}

void lay_rounded(variable& image) {
  auto device = make_cpu_device(0);
  image.set(in_blocks(image.as_tensor(), rounded(16), device->memory()));
}

std::vector<float> copied(const std::vector<float>& values) {
  std::vector<bfloat16> narrow(values.size());
  std::vector<float> wide(values.size());
  const auto n = static_cast<std::int64_t>(values.size());
  cpu::copy_stored(narrow.data(), values.data(), n);
  cpu::copy_stored(wide.data(), narrow.data(), n);
  return wide;
}

} // namespace

TEST_CASE("stored values are rounded to nearest, ties to even") {
  std::vector<float> values;
  for (const float sign : {1.0f, -1.0f})
    for (const float whole : {1.0f, 3e-39f, 2.5e38f})
      for (const float part :
           {0.0f, 0x1p-9f, 0x1p-8f, 0x1.8p-8f, 0x1.01p-8f, 0x1p-7f, 0x1.4p-7f})
        values.push_back(sign * whole * (1.0f + part));
  values.push_back(std::numeric_limits<float>::infinity());
  values.push_back(std::numeric_limits<float>::max());
  const auto wide = copied(values);
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(wide[i] == static_cast<float>(bfloat16(values[i])));
}

TEST_CASE("a NaN stays one wherever its bits are") {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xffffffffu}) {
    float nan = 0;
    std::memcpy(&nan, &bits, sizeof nan);
    CHECK(std::isnan(copied({nan})[0]));
  }
}

TEST_CASE("rounded images take half the memory and have float32 readers") {
  auto device = make_cpu_device(0);
  auto plain = tensor::make(device->memory(), images, dtype::float32);
  const auto values = values_for(images, 1);
  std::copy(values.begin(), values.end(), plain.data<float>());
  const tensor held = in_blocks(plain, rounded(16), device->memory());
  CHECK(held.type() == dtype::float32);
  CHECK(held.bytes() == plain.bytes() / 2);
  CHECK(held.format()->name() == "nChw16c bf16");
  CHECK_FALSE(held.format()->equals(*cpu::channel_blocks(images, {16})));
  const tensor back = device->to_host(held, device->memory());
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(back.values<float>()[i] == static_cast<float>(bfloat16(values[i])));
}

TEST_CASE("ops take rounded images for the values that they have") {
  for (const std::int64_t block : {8, 16})
    for (const auto& c : image_cases())
      check_rounded_inputs(cpu_kernels(), block, c);
}

TEST_CASE("convolutions in bfloat16 take rounded images, too") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const auto table = cpu_kernels({.factors = precision::bfloat16});
  for (const auto& c : image_cases())
    if (c.type.find("conv2d") != std::string::npos)
      check_rounded_inputs(table, 16, c);
}

TEST_CASE("a sum lies as its first term does") {
  hand_run sum("sum");
  lay_rounded(sum.input("X", images, values_for(images, 1)));
  auto& second = sum.input("X", images, values_for(images, 2));
  auto device = make_cpu_device(0);
  second.set(in_blocks(second.as_tensor(), {16}, device->memory()));
  const auto& out = sum.output("Out");
  sum.run();
  CHECK(cpu::format_of(out.as_tensor()) == rounded(16));
}

TEST_CASE("a normalised image lies as the image does") {
  hand_run norm("batch_norm");
  lay_rounded(norm.input("X", images, values_for(images, 1)));
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"})
    norm.input(slot, {16}, values_for({16}, 2));
  const auto& y = norm.output("Y");
  norm.run();
  CHECK(cpu::format_of(y.as_tensor()) == rounded(16));
}

TEST_CASE("maxima of a rounded image lie as it does, means in float32") {
  for (const bool max : {true, false}) {
    hand_run pool("pool2d", {{"pooling_type", std::string(max ? "max" : "avg")},
                             {"ksize", std::vector<std::int32_t>{3, 3}}});
    lay_rounded(pool.input("X", images, values_for(images, 1)));
    const auto& out = pool.output("Out");
    pool.run();
    CHECK(cpu::format_of(out.as_tensor())
          == (max ? rounded(16) : image_format{16}));
  }
}

TEST_CASE("an activation of a rounded image lies in float32") {
  hand_run relu("relu");
  lay_rounded(relu.input("X", images, values_for(images, 1)));
  const auto& y = relu.output("Out");
  relu.run();
  CHECK(cpu::format_of(y.as_tensor()) == image_format{16});
}

TEST_CASE("a convolution in bfloat16 hands rounded images on") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const shape in{2, 32, 9, 7}, filter{48, 32, 3, 3};
  hand_run conv("conv2d", {}, {.factors = precision::bfloat16});
  conv.input("Input", in, values_for(in, 1));
  conv.input("Filter", filter, values_for(filter, 2));
  const auto& out = conv.output("Output");
  conv.run();
  // With AMX, oneDNN has no kernel whose result lies in blocks.
  if (cpu::format_of(out.as_tensor()).block == 0)
    return skip_case("needs convolutions whose results lie in blocks");
  CHECK(cpu::format_of(out.as_tensor()) == rounded(16));
}

} // TEST_SUITE("kernels.cpu.rounded_images")

} // namespace troupe::test
