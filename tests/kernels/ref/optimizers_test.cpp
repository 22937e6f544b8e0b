// SPDX-License-Identifier: Apache-2.0
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace troupe::test {

TEST_SUITE("kernels.ref.optimizers") {

namespace {

op_value of(const shape& dims, std::vector<double> elements) {
  return values_of(dims, std::move(elements), dtype::float64);
}

op_value rows_of(std::int64_t height, std::vector<std::int64_t> rows,
                 std::vector<double> elements) {
  auto value =
    of({static_cast<std::int64_t>(rows.size()), 1}, std::move(elements));
  value.rows = std::move(rows);
  value.height = height;
  return value;
}

op_values run(const op_case& c) {
  return run_op(reference_kernels(), c);
}

void check(const op_values& results, const std::string& slot,
           std::vector<double> expected) {
  const auto& value = results.at(slot)[0];
  const auto text =
    difference(value, of(value.dims, std::move(expected)), 1e-12);
  CHECK_MESSAGE(text.empty(), slot, ": ", text);
}

op_case momentum(op_value grad, attribute_map attributes = {}) {
  attributes.set("mu", 0.5f);
  return {.type = "momentum",
          .inputs = {{"Param", {of({2, 1}, {1, 2})}},
                     {"Grad", {std::move(grad)}},
                     {"Velocity", {of({2, 1}, {10, 20})}},
                     {"LearningRate", {of({1}, {0.1})}}},
          .attributes = std::move(attributes),
          .outputs = {{"ParamOut", 1}, {"VelocityOut", 1}}};
}

op_case adam(op_value grad, double step, attribute_map attributes = {}) {
  attributes.set("beta1", 0.5f);
  attributes.set("beta2", 0.75f);
  attributes.set("epsilon", 0.25f);
  return {
    .type = "adam",
    .inputs = {{"Param", {of({2, 1}, {1, 2})}},
               {"Grad", {std::move(grad)}},
               {"LearningRate", {of({1}, {0.1})}},
               {"Moment1", {of({2, 1}, {0.5, -0.5})}},
               {"Moment2", {of({2, 1}, {0.25, 1})}},
               {"Beta1Pow", {of({1}, {std::pow(0.5, step)})}},
               {"Beta2Pow", {of({1}, {std::pow(0.75, step)})}}},
    .attributes = std::move(attributes),
    .outputs = {{"ParamOut", 1},
                {"Moment1Out", 1},
                {"Moment2Out", 1},
                {"Beta1PowOut", 1},
                {"Beta2PowOut", 1}},
    .in_place = {{"Beta1PowOut", "Beta1Pow"}, {"Beta2PowOut", "Beta2Pow"}}};
}

/// Kingma and Ba, algorithm 1, for one number at step `t`.
double adam_step(double p, double g, double m, double v, double t,
                 bool scaled_epsilon = true) {
  m = 0.5 * m + 0.5 * g;
  v = 0.75 * v + 0.25 * g * g;
  const double root = std::sqrt(1 - std::pow(0.75, t));
  const double alpha = 0.1 * root / (1 - std::pow(0.5, t));
  const double epsilon = 0.25 * (scaled_epsilon ? root : 1);
  return p - alpha * m / (std::sqrt(v) + epsilon);
}

/// What Paddle's kernel for rows does to a row that does not occur.
double missing_step(double p, double m, double v, double t) {
  return adam_step(p, 0, m, v, t, false);
}

} // namespace

TEST_CASE("sgd goes down the gradient by the learning rate") {
  op_case c{.type = "sgd",
            .inputs = {{"Param", {of({3, 1}, {1, 2, 3})}},
                       {"Grad", {of({3, 1}, {10, 20, 30})}},
                       {"LearningRate", {of({1}, {0.1})}}},
            .outputs = {{"ParamOut", 1}}};
  check(run(c), "ParamOut", {0, 0, 0});
  c.inputs["Grad"] = {rows_of(3, {2, 0, 2}, {10, 5, 20})};
  check(run(c), "ParamOut", {0.5, 2, 0});
}

TEST_CASE("momentum adds the gradient to the decayed velocity") {
  const auto results = run(momentum(of({2, 1}, {3, 4})));
  check(results, "VelocityOut", {8, 14});
  check(results, "ParamOut", {1 - 0.8, 2 - 1.4});
}

TEST_CASE("nesterov momentum looks ahead") {
  const auto results =
    run(momentum(of({2, 1}, {3, 4}), {{"use_nesterov", true}}));
  check(results, "VelocityOut", {8, 14});
  check(results, "ParamOut", {1 - 0.1 * (3 + 4), 2 - 0.1 * (4 + 7)});
}

TEST_CASE("momentum's l2 decay adds the parameter to the gradient") {
  const attribute_map decay{{"regularization_method", "l2_decay"},
                            {"regularization_coeff", 0.5f},
                            {"rescale_grad", 2.0f}};
  // Paddle's CPU kernel rescales rows alone.
  check(run(momentum(of({2, 1}, {3, 4}), decay)), "VelocityOut",
        {5 + 3 + 0.5, 10 + 4 + 1});
  check(run(momentum(rows_of(2, {0, 1}, {3, 4}), decay)), "VelocityOut",
        {5 + 6 + 0.5, 10 + 8 + 1});
}

TEST_CASE("the velocity of rows without gradient decays as well") {
  const auto results = run(momentum(rows_of(2, {1, 1}, {1, 3})));
  check(results, "VelocityOut", {5, 14});
  check(results, "ParamOut", {1 - 0.5, 2 - 1.4});
}

TEST_CASE("adam follows its published algorithm") {
  for (double step : {1.0, 7.0}) {
    const auto results = run(adam(of({2, 1}, {2, -1}), step));
    check(results, "ParamOut",
          {adam_step(1, 2, 0.5, 0.25, step), adam_step(2, -1, -0.5, 1, step)});
    check(results, "Moment1Out", {1.25, -0.75});
    check(results, "Moment2Out", {0.1875 + 1, 0.75 + 0.25});
    check(results, "Beta1PowOut", {std::pow(0.5, step + 1)});
    check(results, "Beta2PowOut", {std::pow(0.75, step + 1)});
  }
}

TEST_CASE("adam takes missing rows as zero gradient") {
  const auto results = run(adam(rows_of(2, {1, 1}, {-3, 2}), 1));
  // Rows are corrected as at the next step, as Paddle's CPU kernel does.
  check(results, "ParamOut",
        {missing_step(1, 0.5, 0.25, 2), adam_step(2, -1, -0.5, 1, 2)});
  check(results, "Beta1PowOut", {0.25});
}

TEST_CASE("lazy adam leaves missing rows alone") {
  const auto results =
    run(adam(rows_of(2, {1, 1}, {-3, 2}), 1, {{"lazy_mode", true}}));
  check(results, "ParamOut", {1, adam_step(2, -1, -0.5, 1, 2)});
  check(results, "Moment1Out", {0.5, -0.75});
  check(results, "Moment2Out", {0.25, 1});
}

TEST_CASE("adam on rows uses the step's own powers if others advance them") {
  auto c = adam(rows_of(2, {1, 1}, {-3, 2}), 1);
  c.outputs.erase("Beta1PowOut");
  c.outputs.erase("Beta2PowOut");
  c.in_place.clear();
  check(run(c), "ParamOut",
        {missing_step(1, 0.5, 0.25, 1), adam_step(2, -1, -0.5, 1, 1)});
}
} // TEST_SUITE("kernels.ref.optimizers")

} // namespace troupe::test
