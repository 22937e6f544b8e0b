// SPDX-License-Identifier: Apache-2.0
// Kernels that multiply in bfloat16 against the same ones in float32.
#include <kernels/cpu/blocked_images.hpp>
#include <support/caught.hpp>
#include <support/machine.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>
#include <support/skip_case.hpp>

#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.cpu.precision") {

namespace {

const kernel_options in_bfloat16{.factors = precision::bfloat16};

/// Whole numbers of 4 bits, which bfloat16 has, and whose sums float32 has.
op_value whole(const shape& dims, std::uint64_t seed) {
  auto value = random_indices(dims, seed, -8, 8);
  value.type = dtype::float32;
  return value;
}

op_case mul(op_value x, op_value y) {
  return {.type = "mul",
          .inputs = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
          .gradient = gradient_slots{{"Out"}, {"X", "Y"}, {"X", "Y"}}};
}

op_case matmul(op_value x, op_value y, bool transpose_x = false,
               bool transpose_y = false) {
  auto c = mul(std::move(x), std::move(y));
  c.type = "matmul_v2";
  c.attributes = {{"trans_x", transpose_x}, {"trans_y", transpose_y}};
  return c;
}

/// Products that are large enough to be rounded, in all forms that are read:
/// transposed factors, one factor for several batches, rows of batches.
std::vector<op_case> products() {
  return {mul(whole({96, 100}, 1), whole({100, 70}, 2)),
          matmul(whole({90, 80}, 3), whole({80, 100}, 4)),
          matmul(whole({80, 90}, 5), whole({100, 80}, 6), true, true),
          matmul(whole({3, 90, 80}, 7), whole({3, 100, 80}, 8), false, true),
          matmul(whole({3, 90, 80}, 9), whole({80, 100}, 10)),
          matmul(whole({2, 3, 80, 90}, 11), whole({3, 80, 100}, 12), true)};
}

op_case conv(const char* type, op_value image, op_value filter,
             std::vector<std::int32_t> strides = {1, 1}, int groups = 1) {
  return {
    .type = type,
    .inputs = {{"Input", {std::move(image)}}, {"Filter", {std::move(filter)}}},
    .attributes = {{"strides", std::move(strides)}, {"groups", groups}},
    .outputs = {{"Output", 1}},
    .gradient =
      gradient_slots{{"Output"}, {"Input", "Filter"}, {"Input", "Filter"}}};
}

/// Convolutions whose factors are rounded in all directions or, in groups of
/// few channels, in some.
std::vector<op_case> convolutions() {
  const auto conv2d = [](op_value image, op_value filter,
                         std::vector<std::int32_t> strides = {1, 1},
                         int groups = 1) {
    return conv("conv2d", std::move(image), std::move(filter),
                std::move(strides), groups);
  };
  return {
    conv2d(whole({2, 32, 9, 7}, 1), whole({48, 32, 1, 1}, 2)),
    conv2d(whole({2, 32, 9, 7}, 3), whole({16, 32, 3, 3}, 4)),
    conv2d(whole({2, 32, 9, 7}, 5), whole({16, 32, 3, 3}, 6), {2, 2}),
    conv2d(whole({2, 3, 12, 12}, 7), whole({16, 3, 7, 7}, 8), {2, 2}),
    conv2d(whole({2, 17, 6, 6}, 9), whole({13, 17, 3, 3}, 10)),
    // Sums of so many terms that the library may take them in several goes.
    conv2d(whole({1, 1024, 7, 7}, 19), whole({32, 1024, 1, 1}, 20)),
    conv2d(whole({1, 32, 7, 7}, 21), whole({1024, 32, 1, 1}, 22)),
    conv2d(whole({1, 512, 7, 7}, 23), whole({32, 512, 3, 3}, 24)),
    conv2d(whole({1, 32, 7, 7}, 25), whole({512, 32, 3, 3}, 26)),
    conv2d(whole({2, 64, 6, 6}, 11), whole({64, 16, 3, 3}, 12), {1, 1}, 4),
    conv2d(whole({2, 64, 6, 6}, 13), whole({64, 8, 3, 3}, 14), {1, 1}, 8),
    conv("depthwise_conv2d", whole({2, 32, 6, 6}, 15), whole({32, 1, 3, 3}, 16),
         {1, 1}, 32),
    conv("conv2d_transpose", whole({2, 32, 5, 5}, 17),
         whole({32, 16, 3, 3}, 18), {2, 2})};
}

/// The gradient with whole numbers coming in.
op_case backward(const op_case& c) {
  auto back = backward_of(c, run_op(cpu_kernels(), c));
  auto& incoming =
    back.inputs.at(c.gradient->results.front() + "@GRAD").front();
  incoming = whole(incoming.dims, 99);
  return back;
}

op_value rounded(op_value value) {
  for (double& element : value.elements)
    element = static_cast<double>(
      static_cast<float>(bfloat16(static_cast<float>(element))));
  return value;
}

} // namespace

TEST_CASE("a processor without bfloat16 says so") {
  if (has_precision(precision::bfloat16))
    return skip_case("needs a processor without bfloat16");
  const auto failure = caught([] { cpu_kernels(in_bfloat16); });
  CHECK(failure.code() == errc::unsupported_op);
  CHECK(says(failure, "bf16"));
}

TEST_CASE("products of short whole numbers are exact in bfloat16") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const auto rounding = cpu_kernels(in_bfloat16);
  for (const auto& c : products())
    for (const auto& each : {c, backward(c)}) {
      CAPTURE(describe(each));
      CHECK(difference(run_op(rounding, each), run_op(cpu_kernels(), each), 0)
            == "");
    }
}

// Winograd's method has sums of fractions.
TEST_CASE("only results of convolutions of short whole numbers are rounded") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const auto exact = cpu_kernels({.winograd = false});
  const auto direct =
    cpu_kernels({.winograd = false, .factors = precision::bfloat16});
  for (const auto& rounding : {direct, test::with_blocked_inputs(direct, {16})})
    for (const auto& c : convolutions())
      for (const auto& each : {c, backward(c)}) {
        CAPTURE(describe(each));
        const auto expected = run_op(exact, each);
        for (const auto& [slot, made] : run_op(rounding, each)) {
          CAPTURE(slot);
          const auto& wanted = expected.at(slot).front();
          if (difference(made.front(), wanted, 0) != "")
            CHECK(difference(made.front(), rounded(wanted), 0) == "");
        }
      }
}

TEST_CASE("a convolution rounds its factors in each direction") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  auto c = conv("conv2d", random_values({2, 32, 9, 7}, 1),
                random_values({48, 32, 3, 3}, 2));
  const auto rounding = cpu_kernels(in_bfloat16);
  const auto back = backward_of(c, run_op(cpu_kernels(), c));
  for (const auto& each : {c, back})
    for (auto& [slot, exact] : run_op(cpu_kernels(), each)) {
      CAPTURE(slot);
      const auto rounded = run_op(rounding, each).at(slot).front();
      CHECK(difference(rounded, exact.front(), 1e-4) != "");
      CHECK(difference(rounded, exact.front(), 6e-3) == "");
    }
}

TEST_CASE("Winograd's method multiplies in float32, its images are rounded") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  if (!has_own_loops())
    return skip_case("needs AVX2");
  auto c = conv("conv2d", random_values({2, 32, 32, 32}, 1),
                random_values({32, 32, 3, 3}, 2));
  c.attributes.set("paddings", std::vector<std::int32_t>{1, 1});
  const auto exact = run_op(cpu_kernels(), c).at("Output").front();
  const auto made = run_op(cpu_kernels(in_bfloat16), c).at("Output").front();
  CHECK(difference(made, rounded(exact), 0) == "");
}

TEST_CASE("factors are rounded to eight bits, sums and results are not") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const auto c = mul(random_values({96, 400}, 1), random_values({400, 70}, 2));
  const auto exact = run_op(cpu_kernels(), c);
  const auto rounded = run_op(cpu_kernels(in_bfloat16), c);
  CHECK(difference(rounded, exact, 1e-4) != "");
  CHECK(difference(rounded, exact, 4e-3) == "");
}

TEST_CASE("small products and other dtypes are not rounded") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const auto rounding = cpu_kernels(in_bfloat16);
  const auto small = mul(random_values({8, 50}, 1), random_values({50, 70}, 2));
  const auto wide = with_float_type(
    mul(random_values({96, 100}, 1), random_values({100, 70}, 2)),
    dtype::float64);
  for (const auto& c : {small, wide})
    CHECK(difference(run_op(rounding, c), run_op(cpu_kernels(), c), 0) == "");
}

TEST_CASE("a kernel follows its shapes") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  op_runner runner(cpu_kernels(in_bfloat16), products()[1]);
  for (std::int64_t rows : {90, 120, 90}) {
    const auto seed = static_cast<std::uint64_t>(rows); // no stale result fits
    const auto c = matmul(whole({rows, 80}, seed), whole({80, 100}, seed + 1));
    const auto made = runner.run(c);
    CHECK(difference(made, run_op(cpu_kernels(), c), 0) == "");
  }
}

} // TEST_SUITE("kernels.cpu.precision")
