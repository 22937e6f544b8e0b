// SPDX-License-Identifier: Apache-2.0
// assign_value and set_value on attributes that Paddle never writes, and auc on
// statistics that it would read past the end of.
#include <support/op_runner.hpp>

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.attribute_values") {

namespace {

using ints = std::vector<std::int32_t>;
using doubles = std::vector<double>;

std::string failure(const op_case& c) {
  try {
    run_op(cpu_kernels(), c);
  } catch (const error& e) {
    return std::string{to_string(e.code())};
  }
  return "none";
}

op_case assign_value(attribute_map attributes) {
  return {
    .type = "assign_value", .inputs = {}, .attributes = std::move(attributes)};
}

op_case set_value(attribute_map attributes, std::vector<op_value> value = {}) {
  return {.type = "set_value",
          .inputs = {{"Input", {random_values({4, 3}, 1)}},
                     {"ValueTensor", std::move(value)}},
          .attributes = std::move(attributes)};
}

op_case auc(const op_value& predict, const shape& statistics, int window) {
  const op_value zeros =
    values_of(statistics, doubles(static_cast<std::size_t>(statistics.numel())),
              dtype::int64);
  return {.type = "auc",
          .inputs = {{"Predict", {predict}},
                     {"Label", {values_of({2, 1}, {1, 0}, dtype::int64)}},
                     {"StatPos", {zeros}},
                     {"StatNeg", {zeros}}},
          .attributes = {{"num_thresholds", 4}, {"slide_steps", window}},
          .outputs = {{"AUC", 1}, {"StatPosOut", 1}, {"StatNegOut", 1}}};
}

} // namespace

TEST_CASE("assign_value takes newer programs' list values") {
  const auto c =
    assign_value({{"shape", ints{2}}, {"values", doubles{0.5, -1}}});
  const auto out = run_op(cpu_kernels(), c).at("Out")[0];
  CHECK(out.elements == doubles{0.5, -1});
  CHECK(out.type == dtype::float32);
}

TEST_CASE("another number of values than elements is refused") {
  using floats = std::vector<float>;
  const char* bad = "invalid_argument";
  CHECK(failure(assign_value({{"shape", ints{2}}})) == bad);
  CHECK(
    failure(assign_value({{"shape", ints{3}}, {"fp32_values", floats{1, 2}}}))
    == bad);
  CHECK(failure(set_value({{"shape", ints{3}}, {"values", doubles{1, 2}}}))
        == bad);
  CHECK(failure(set_value({{"shape", ints{1}}, {"values", 1.0}})) == bad);
}

TEST_CASE("set_value refuses values that do not fit its part") {
  const attribute_map rows{{"axes", ints{0}},
                           {"starts", ints{1}},
                           {"ends", ints{3}},
                           {"steps", ints{1}}};
  CHECK(failure(set_value(rows, {random_values({2, 3}, 2)})) == "none");
  for (const shape& dims : {shape{3, 3}, shape{2, 2}, shape{2, 2, 3}}) {
    CAPTURE(to_string(dims));
    CHECK(failure(set_value(rows, {random_values(dims, 2)}))
          == "shape_mismatch");
  }
  CHECK(failure(set_value(rows, {values_of({1}, {1}, dtype::int64)}))
        == "dtype_mismatch");
  auto dropped = rows;
  dropped.set("decrease_axes", ints{0});
  CHECK(failure(set_value(dropped, {random_values({3}, 2)}))
        == "shape_mismatch");
}

TEST_CASE("set_value refuses axes and steps that there are not") {
  const auto with = [](ints axes, ints steps) {
    return failure(set_value({{"axes", std::move(axes)},
                              {"starts", ints{0}},
                              {"ends", ints{1}},
                              {"steps", std::move(steps)},
                              {"shape", ints{1}},
                              {"values", doubles{1}}}));
  };
  CHECK(with({0}, {1}) == "none");
  CHECK(with({2}, {1}) == "out_of_range");
  CHECK(with({0}, {0}) == "invalid_argument");
  CHECK(with({0, 1}, {1, 1}) == "invalid_argument");
}

TEST_CASE("auc refuses what is no probability and statistics too short") {
  const auto good = values_of({2, 1}, {0.0, 1.0});
  CHECK(failure(auc(good, {1, 5}, 0)) == "none");
  CHECK(failure(auc(good, {1, 4}, 0)) == "shape_mismatch");
  CHECK(failure(auc(good, {16}, 2)) == "none");
  CHECK(failure(auc(good, {15}, 2)) == "shape_mismatch");
  CHECK(failure(auc(values_of({2, 1}, {0.5, 1.01}), {1, 5}, 0))
        == "out_of_range");
  CHECK(failure(auc(values_of({2, 1}, {-0.1, 1}), {1, 5}, 0))
        == "out_of_range");
  CHECK(failure(auc(values_of({3, 1}, {0, 1, 1}), {1, 5}, 0))
        == "shape_mismatch");
}
} // TEST_SUITE("kernels.cpu.attribute_values")

} // namespace troupe::test
