// SPDX-License-Identifier: Apache-2.0
// Ops of older Fluid releases that Paddle 2.6 no longer has: against values
// worked out by hand and against central differences, in double precision.
#include <kernels/cases/gradient_difference.hpp>
#include <support/op_runner.hpp>

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.fluid_ops") {

namespace {

using doubles = std::vector<double>;

op_value wide(const shape& dims, doubles elements) {
  return values_of(dims, std::move(elements), dtype::float64);
}

op_case cos_sim(op_value x, op_value y) {
  return {.type = "cos_sim",
          .inputs = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
          .outputs = {{"Out", 1}, {"XNorm", 1}, {"YNorm", 1}},
          .gradient = gradient_slots{
            {"Out"}, {"X", "Y", "XNorm", "YNorm", "Out"}, {"X", "Y"}}};
}

op_case smooth_l1(op_value x, op_value y, float sigma) {
  return {.type = "smooth_l1_loss",
          .inputs = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
          .attributes = {{"sigma", sigma}},
          .outputs = {{"Out", 1}, {"Diff", 1}},
          .gradient = gradient_slots{{"Out"}, {"Diff"}, {"X", "Y"}}};
}

doubles out_of(const op_case& c, const std::string& slot = "Out") {
  return run_op(cpu_kernels(), c).at(slot)[0].elements;
}

void check_near(const doubles& actual, const doubles& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

op_value random_wide(const shape& dims, std::uint64_t seed) {
  auto value = random_values(dims, seed, -2, 2);
  value.type = dtype::float64;
  return value;
}

errc failure(const op_case& c) {
  try {
    run_op(cpu_kernels(), c);
  } catch (const error& e) {
    return e.code();
  }
  return errc{};
}

std::string gradient_difference(const op_case& c) {
  return test::gradient_difference(cpu_kernels(), c);
}

bool is_finite(op_value x, const char* type = "isfinite") {
  return out_of({.type = type, .inputs = {{"X", {std::move(x)}}}})
         == doubles{1};
}

} // namespace

TEST_CASE("cos_sim is the cosine between rows") {
  const auto c =
    cos_sim(wide({2, 2}, {3, 4, 1, 0}), wide({2, 2}, {4, 3, 0, 2}));
  check_near(out_of(c), {24.0 / 25, 0});
  check_near(out_of(c, "XNorm"), {5, 1});
  check_near(out_of(c, "YNorm"), {5, 2});
  const auto shared = cos_sim(wide({2, 2}, {3, 4, 1, 0}), wide({1, 2}, {4, 3}));
  check_near(out_of(shared), {24.0 / 25, 4.0 / 5});
  check_near(out_of(shared, "YNorm"), {5});
}

TEST_CASE("cos_sim of a zero row is 0, its norm the smallest") {
  const auto c = cos_sim(wide({1, 2}, {0, 0}), wide({1, 2}, {4, 3}));
  check_near(out_of(c), {0});
  check_near(out_of(c, "XNorm"), {1e-4});
}

TEST_CASE("gradients of cos_sim equal central differences") {
  const auto pairs = cos_sim(random_wide({3, 5}, 1), random_wide({3, 5}, 2));
  CHECK(gradient_difference(pairs) == "");
  const auto to_one =
    cos_sim(random_wide({3, 2, 2}, 3), random_wide({1, 2, 2}, 4));
  CHECK(gradient_difference(to_one) == "");
}

TEST_CASE("smooth_l1_loss is squared near 0 and linear beyond 1 / sigma^2") {
  const auto x = wide({2, 2}, {0.1, 3, -1, 0});
  const auto y = wide({2, 2}, {0, 0, 0, 0.2});
  check_near(out_of(smooth_l1(x, y, 1.0f)),
             {0.5 * 0.01 + 2.5, 0.5 + 0.5 * 0.04});
  check_near(out_of(smooth_l1(x, y, 2.0f)),
             {0.5 * 4 * 0.01 + 3 - 0.125, 1 - 0.125 + 0.5 * 4 * 0.04});
}

TEST_CASE("smooth_l1_loss weighs differences inside and losses outside") {
  auto c = smooth_l1(wide({1, 2}, {0.1, 3}), wide({1, 2}, {0, 0}), 1.0f);
  c.inputs["InsideWeight"] = {wide({1, 2}, {2, 0.1})};
  c.inputs["OutsideWeight"] = {wide({1, 2}, {10, 100})};
  check_near(out_of(c), {10 * 0.5 * 0.04 + 100 * 0.5 * 0.09});
  check_near(out_of(c, "Diff"), {0.2, 0.3});
}

TEST_CASE("gradients of smooth_l1_loss equal central differences") {
  for (const float sigma : {1.0f, 3.0f}) {
    auto c =
      smooth_l1(random_wide({3, 2, 2}, 5), random_wide({3, 2, 2}, 6), sigma);
    CHECK(gradient_difference(c) == "");
    c.gradient->kept = {"InsideWeight", "OutsideWeight", "Diff"};
    c.inputs["InsideWeight"] = {random_wide({3, 2, 2}, 7)};
    c.inputs["OutsideWeight"] = {random_wide({3, 2, 2}, 8)};
    CHECK(gradient_difference(c) == "");
  }
}

TEST_CASE("isfinite gives one answer for the whole tensor") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(is_finite(wide({3}, {1, -2, 1e300})));
  CHECK_FALSE(is_finite(wide({3}, {1, -infinite, 0})));
  CHECK_FALSE(is_finite(wide({3}, {1, std::nan(""), 0})));
  CHECK(is_finite(values_of({2}, {1, 2}, dtype::int64)));
  auto rows = random_rows({5, 2}, {1, 3}, 9);
  CHECK(is_finite(rows));
  rows.elements[3] = infinite;
  CHECK_FALSE(is_finite(rows));
}

TEST_CASE("operands of other shapes are refused") {
  const auto x = random_wide({3, 2}, 1);
  CHECK(failure(cos_sim(x, random_wide({2, 2}, 2))) == errc::shape_mismatch);
  CHECK(failure(cos_sim(x, random_wide({3, 1}, 2))) == errc::shape_mismatch);
  CHECK(failure(cos_sim(random_wide({3}, 1), random_wide({3}, 2)))
        == errc::shape_mismatch);
  CHECK(failure(smooth_l1(x, random_wide({3, 1}, 2), 1.0f))
        == errc::shape_mismatch);
  CHECK(failure(smooth_l1(x, random_values({3, 2}, 2), 1.0f))
        == errc::dtype_mismatch);
  auto weighed_twice = smooth_l1(x, x, 1.0f);
  weighed_twice.inputs["InsideWeight"] = {random_wide({2, 2}, 3)};
  CHECK(failure(weighed_twice) == errc::shape_mismatch);
}
} // TEST_SUITE("kernels.cpu.fluid_ops")

} // namespace troupe::test
