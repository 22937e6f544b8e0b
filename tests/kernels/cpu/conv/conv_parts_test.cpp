// SPDX-License-Identifier: Apache-2.0
// Convolutions that cut their work against the same ones in one go.
#include <kernels/cpu/blocked_images.hpp>
#include <kernels/cpu/shared_run.hpp>
#include <support/machine.hpp>
#include <support/skip_case.hpp>

#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.cpu.conv_parts") {

namespace {

using ints = std::vector<std::int32_t>;

struct window {
  ints strides = {1, 1};
  ints paddings = {0, 0};
  int groups = 1;
  std::string format = "NCHW";
};

op_case conv(const shape& images, const shape& filters, const window& w = {}) {
  return {.type = "conv2d",
          .inputs = {{"Input", {random_values(images, 1)}},
                     {"Filter", {random_values(filters, 2)}}},
          .attributes = {{"strides", w.strides},
                         {"paddings", w.paddings},
                         {"groups", w.groups},
                         {"data_format", w.format}},
          .outputs = {{"Output", 1}},
          .gradient = gradient_slots{
            {"Output"}, {"Input", "Filter"}, {"Input", "Filter"}}};
}

op_case padded_3x3(std::int64_t samples, std::int64_t channels,
                   std::int64_t filters, std::int64_t side) {
  return conv({samples, channels, side, side}, {filters, channels, 3, 3},
              {.paddings = {1, 1}});
}

/// One tile of Winograd's method for each sample.
op_case wide_conv(std::int64_t samples, std::int64_t channels) {
  return padded_3x3(samples, channels, channels, 4);
}

/// The forward op and the gradient of the images, whose samples are shared.
void check_samples(const kernel_table& table, const op_case& c,
                   double tolerance = near) {
  const auto back = backward_of(c, check_op(table, c, tolerance));
  check_op(table, only_output(back, "Input@GRAD"), tolerance);
}

} // namespace

TEST_CASE("samples of a convolution in parts are near the whole's") {
  for (const auto* table : {&plain(), &blocked()}) {
    check_samples(*table, conv({7, 64, 20, 20}, {48, 64, 1, 1}));
    check_samples(*table, padded_3x3(7, 32, 32, 20));
    check_samples(*table,
                  conv({7, 32, 21, 21}, {48, 32, 3, 3}, {.strides = {2, 2}}));
    check_samples(*table, conv({7, 64, 14, 14}, {64, 16, 3, 3},
                               {.paddings = {1, 1}, .groups = 4}));
    // a filter that is packed in parts, too
    check_samples(*table, conv({7, 256, 8, 8}, {512, 256, 1, 1}));
  }
  check_samples(plain(),
                conv({7, 3, 52, 52}, {16, 3, 7, 7}, {.strides = {2, 2}}));
  check_samples(plain(), conv({7, 17, 20, 20}, {21, 17, 3, 3}));
  check_samples(plain(), conv({7, 20, 20, 32}, {48, 32, 3, 3},
                              {.paddings = {1, 1}, .format = "NHWC"}));
}

TEST_CASE("fewer samples than workers are shared too") {
  check_samples(plain(), conv({2, 32, 30, 30}, {32, 32, 3, 2}));
  check_samples(plain(), conv({2, 64, 28, 28}, {64, 64, 1, 1}));
  check_whole(plain(), conv({1, 32, 30, 30}, {32, 32, 3, 2}));
}

TEST_CASE("a convolution with a bias is cut before that is added") {
  auto c = conv({7, 64, 20, 20}, {48, 64, 1, 1});
  c.inputs["Bias"] = {random_values({48}, 3)};
  check_op(plain(), c, near);
}

// Few tiles: workers share these, then the filters. Many: chunks of tiles. More
// filters than one window of a filter gradient.
TEST_CASE("Winograd's method in parts gives the bits of the whole") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  const bool wide = cpu::machine_vectors() == cpu::vector_level::v4;
  const auto filling_vectors =
    with_blocked_inputs(cpu_kernels(), {wide ? 16 : 8});
  for (const auto& c : {wide_conv(33, 128), wide_conv(7, 80),
                        padded_3x3(7, 32, 48, 32), padded_3x3(5, 176, 144, 24)})
    for (const auto* table : {&plain(), &filling_vectors})
      check_each(*table, c, same_bits);
}

TEST_CASE("filters that slide along rows in parts give the bits of the whole") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  for (const auto& c : {conv({24, 1, 28, 28}, {20, 1, 5, 5}),
                        conv({16, 20, 12, 12}, {50, 20, 5, 5})}) {
    const auto back = backward_of(c, check_op(plain(), c, same_bits));
    check_op(plain(), only_output(back, "Filter@GRAD"), same_bits);
    check_op(plain(), only_output(back, "Input@GRAD"), near);
  }
}

TEST_CASE("groups of four channels in parts give the bits of the whole") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  for (const std::int64_t block : {8, 16})
    check_each(
      with_blocked_inputs(cpu_kernels(), {block}),
      conv({7, 48, 24, 25}, {48, 4, 3, 3}, {.paddings = {1, 1}, .groups = 12}),
      same_bits);
}

TEST_CASE("little work of Winograd's method stays whole") {
  const auto tiles = wide_conv(3, 32);
  check_whole(plain(), tiles);
  check_whole(plain(), backward_of(tiles, run_op(plain(), tiles)));
  check_whole(plain(), padded_3x3(3, 16, 16, 5)); // the library's
}

TEST_CASE("a convolution takes one batch after the other in parts") {
  const sizes some{7, 1, 12, 2, 7};
  const auto padded = [](auto n) { return padded_3x3(n, 32, 32, 20); };
  check_batches(plain(), padded, some);
  check_batches(blocked(), padded, some);
  check_batches(
    plain(),
    [](auto n) {
      return conv({n, 3, 52, 52}, {16, 3, 7, 7}, {{2, 2}});
    },
    some);
}

TEST_CASE("workers that share filters for one batch share tiles of another") {
  const auto of_batch = [](auto n) { return wide_conv(n, 64); };
  check_batches(plain(), of_batch, {44, 400, 44, 33});
  check_batches(plain(), of_batch, {400, 44});
}

} // TEST_SUITE("kernels.cpu.conv_parts")
