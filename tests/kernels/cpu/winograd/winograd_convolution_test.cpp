// SPDX-License-Identifier: Apache-2.0
// Convolutions 3x3 by Winograd's method against the direct method.
#include <kernels/cpu/blocked_images.hpp>
#include <kernels/cpu/hand_run.hpp>
#include <support/machine.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>
#include <support/skip_case.hpp>

#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/winograd/winograd_convolution.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.cpu.winograd_convolution") {

namespace {

using ints = std::vector<std::int32_t>;

// Roundings are about ten times those of the direct method.
constexpr double near = 2e-5;

op_case conv(const shape& images, std::int64_t filters, ints paddings = {1, 1},
             const std::string& format = "NCHW") {
  const auto channels = format == "NCHW" ? images[1] : images[3];
  return {
    .type = "conv2d",
    .inputs = {{"Input", {random_values(images, 1)}},
               {"Filter", {random_values({filters, channels, 3, 3}, 2)}}},
    .attributes = {{"paddings", std::move(paddings)}, {"data_format", format}},
    .outputs = {{"Output", 1}},
    .gradient =
      gradient_slots{{"Output"}, {"Input", "Filter"}, {"Input", "Filter"}}};
}

/// The op and its gradient are near what the direct method gives.
void check(const kernel_table& table, const op_case& c) {
  static const auto direct = cpu_kernels({.winograd = false});
  CAPTURE(describe(c));
  const auto expected = run_op(direct, c);
  CHECK(difference(run_op(table, c), expected, near) == "");
  const auto back = backward_of(c, expected);
  CHECK(difference(run_op(table, back), run_op(direct, back), near) == "");
}

/// Images are given in blocks of 16 channels where these fill them, else of 8.
kernel_table with_widest_inputs() {
  return with_blocked_inputs(with_blocked_inputs(cpu_kernels(), {8}), {16});
}

/// Images are given as they are, in blocks of 8 channels, of 16, and of both.
void check_layouts(const op_case& c) {
  check(cpu_kernels(), c);
  for (const std::int64_t block : {8, 16})
    check(with_blocked_inputs(cpu_kernels(), {block}), c);
  check(with_widest_inputs(), c);
}

cpu::conv_problem problem(const shape& images, std::int64_t filters,
                          std::int64_t stride = 1) {
  const auto axis = [&](std::int64_t length) {
    return window_axis{length, 3, stride, 1, 1, 1};
  };
  const auto h = axis(images[2]);
  const auto w = axis(images[3]);
  return {.in = images,
          .filter = {filters, images[1], 3, 3},
          .out = {images[0], filters, h.positions(), w.positions()},
          .axes = {h, w}};
}

bool fits(const cpu::conv_problem& p, precision factors = precision::float32) {
  return cpu::winograd_convolution::fits(cpu::conv_direction::forward, p,
                                         factors);
}

} // namespace

TEST_CASE("tiles that fill images, reach beyond them, and do not fill one") {
  check_layouts(conv({2, 32, 16, 16}, 32));
  check_layouts(conv({2, 32, 15, 18}, 32));
  check_layouts(conv({3, 32, 9, 7}, 32));
  check_layouts(conv({16, 32, 3, 4}, 32));
}

TEST_CASE("padding is read as zeros, on each side its own") {
  check_layouts(conv({2, 16, 14, 13}, 32, {0, 0}));
  check_layouts(conv({2, 16, 14, 13}, 32, {2, 2}));
  check_layouts(conv({2, 16, 14, 13}, 32, {0, 1}));
  check_layouts(conv({2, 16, 14, 13}, 32, {0, 2, 1, 0}));
  check_layouts(conv({2, 16, 14, 13}, 32, {3, 3})); // outside of each window
}

TEST_CASE("numbers of channels that fill one vector, pairs and more") {
  check_layouts(conv({4, 16, 8, 8}, 16));
  check_layouts(conv({4, 24, 8, 8}, 40)); // in blocks of 8
  check_layouts(conv({4, 80, 8, 8}, 48));
  check_layouts(conv({4, 144, 8, 8}, 32));
  check_layouts(conv({4, 32, 8, 8}, 272));
}

TEST_CASE("tiles of several chunks that samples do not divide") {
  check_layouts(conv({3, 32, 28, 28}, 32));
  check_layouts(conv({2, 144, 36, 36}, 160)); // and several windows of channels
}

TEST_CASE("numbers of tiles around those that registers hold") {
  for (std::int64_t samples = 2; samples <= 30; ++samples)
    check_layouts(conv({samples, 64, 4, 4}, 64));
}

TEST_CASE("images with channels last") {
  check(cpu_kernels(), conv({3, 18, 15, 32}, 48, {1, 1}, "NHWC"));
  check(cpu_kernels(), conv({3, 18, 15, 24}, 16, {0, 1}, "NHWC"));
}

TEST_CASE("however images lie, the bits are the same") {
  if (cpu::machine_vectors() != cpu::vector_level::v4)
    return skip_case("needs AVX-512, whose vectors fill blocks of 16");
  const auto c = conv({3, 48, 18, 15}, 32);
  const auto plain = run_op(cpu_kernels(), c);
  const auto back = backward_of(c, plain);
  const auto blocked = with_blocked_inputs(cpu_kernels(), {16});
  CHECK(difference(run_op(blocked, c), plain, 0) == "");
  CHECK(difference(run_op(blocked, back), run_op(cpu_kernels(), back), 0)
        == "");
}

TEST_CASE(
  "vectors of 8 channels are read from blocks of 16, and written there") {
  for (const auto& c : {conv({3, 24, 18, 15}, 32), conv({3, 48, 18, 15}, 24)}) {
    CAPTURE(describe(c));
    const auto plain = run_op(cpu_kernels(), c);
    const auto back = backward_of(c, plain);
    const auto mixed = with_widest_inputs();
    CHECK(difference(run_op(mixed, c), plain, 0) == "");
    CHECK(difference(run_op(mixed, back), run_op(cpu_kernels(), back), 0)
          == "");
  }
}

TEST_CASE("what is made of 24 channels lies in the widest blocks it fills") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  const bool wide = cpu::machine_vectors() == cpu::vector_level::v4;
  cpu::convolution conv(cpu::conv_direction::forward);
  CHECK(conv.prepare(problem({4, 24, 14, 14}, 32)).block == (wide ? 16 : 8));
  CHECK(conv.prepare(problem({4, 24, 14, 14}, 40)).block == 8);
}

TEST_CASE("it is taken for filters 3x3 that slide by one pixel") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  const shape images{4, 32, 14, 14};
  CHECK(fits(problem(images, 64)));
  CHECK_FALSE(fits(problem(images, 64, 2)));
  auto grouped = problem(images, 64);
  grouped.groups = 2;
  CHECK_FALSE(fits(grouped));
  auto dilated = problem(images, 64);
  dilated.axes[1].dilation = 2;
  CHECK_FALSE(fits(dilated));
  auto flat = problem(images, 64);
  flat.axes[0].extent = 1;
  CHECK_FALSE(fits(flat));
}

TEST_CASE("it is taken for channels that fill vectors") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  CHECK(fits(problem({4, 24, 14, 14}, 40)));
  CHECK_FALSE(fits(problem({4, 20, 14, 14}, 32)));
  CHECK_FALSE(fits(problem({4, 32, 14, 14}, 20)));
  CHECK_FALSE(fits(problem({4, 0, 14, 14}, 32)));
  auto mixed = problem({4, 32, 14, 14}, 32);
  mixed.in_format.block = 8;
  mixed.out_format.block = 16;
  CHECK(fits(mixed));
  auto blocks_of_16 = problem({4, 32, 14, 14}, 32);
  blocks_of_16.filter_in_blocks = true;
  CHECK(fits(blocks_of_16)
        == (cpu::machine_vectors() == cpu::vector_level::v4));
  blocks_of_16.in_format.block = 8;
  CHECK_FALSE(fits(blocks_of_16));
}

TEST_CASE("it is taken where it saves more than transforming takes") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  CHECK_FALSE(fits(problem({1, 256, 4, 4}, 256)));
  CHECK(fits(problem({2, 256, 4, 4}, 256)));
  CHECK_FALSE(fits(problem({64, 256, 1, 1}, 256))); // empty pixels
  CHECK_FALSE(fits(problem({64, 256, 2, 2}, 256)));
  CHECK(fits(problem({64, 256, 3, 3}, 256)));
  CHECK(fits(problem({4, 16, 8, 8}, 16)));
  CHECK_FALSE(fits(problem({4, 16, 8, 8}, 16), precision::bfloat16));
  CHECK(fits(problem({4, 256, 8, 8}, 256), precision::bfloat16));
}

TEST_CASE("transformed filters do not lie in memory") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  const shape images{32, 512, 4, 4};
  const shape filters{512, 512, 3, 3};
  const auto zeros = [](const shape& dims) {
    return std::vector<float>(static_cast<std::size_t>(dims.numel()));
  };
  const auto peak = [&](const char* type, const char* third, const char* made) {
    hand_run run(type, {{"paddings", ints{1, 1}}});
    run.input("Input", images, zeros(images));
    run.input("Filter", filters, zeros(filters));
    if (third)
      run.input(third, images, zeros(images));
    run.output(made);
    run.run();
    return run.peak_bytes();
  };
  // Transformed, these filters alone take 38 MB.
  CHECK(peak("conv2d", nullptr, "Output") < 20'000'000);
  CHECK(peak("conv2d_grad", "Output@GRAD", "Input@GRAD") < 20'000'000);
  CHECK(peak("conv2d_grad", "Output@GRAD", "Filter@GRAD") < 30'000'000);
}

} // TEST_SUITE("kernels.cpu.winograd_convolution")
