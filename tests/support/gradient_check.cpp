// SPDX-License-Identifier: Apache-2.0
#include <support/gradient_check.hpp>

#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::test {

namespace {

constexpr double step_size = 1e-5;
constexpr double tolerance = 1e-6;
constexpr double smallest_magnitude = 1e-2;

/// Weighted sum of all result elements. The weights are the gradients that the
/// backward op gets as input.
double projection(const op_case& forward, const op_values& results,
                  const op_case& backward) {
  double total = 0;
  for (const auto& slot : forward.gradient->results) {
    const auto& values = results.at(slot);
    const auto& weights = backward.inputs.at(slot + "@GRAD");
    for (std::size_t n = 0; n < values.size(); ++n)
      for (std::size_t i = 0; i < values[n].elements.size(); ++i)
        total += values[n].elements[i] * weights[n].elements[i];
  }
  return total;
}

/// Central difference of the projection with respect to `element`, which is an
/// element of an input of `c`.
double central_difference(op_runner& runner, const op_case& c,
                          const op_case& backward, double& element) {
  const double middle = element;
  element = middle + step_size;
  const double above = projection(c, runner.run(c), backward);
  element = middle - step_size;
  const double below = projection(c, runner.run(c), backward);
  element = middle;
  return (above - below) / (2 * step_size);
}

op_value numeric_gradient(op_runner& runner, op_case& c,
                          const op_case& backward, op_value& value) {
  op_value result = value;
  for (std::size_t i = 0; i < value.elements.size(); ++i)
    result.elements[i] =
      central_difference(runner, c, backward, value.elements[i]);
  return result;
}

std::string check_slot(op_runner& runner, op_case& c, const op_case& backward,
                       const op_values& gradients, const std::string& slot) {
  auto& values = c.inputs.at(slot);
  for (std::size_t n = 0; n < values.size(); ++n) {
    const auto numeric = numeric_gradient(runner, c, backward, values[n]);
    const auto& given = gradients.at(slot + "@GRAD")[n];
    const double most = magnitude(numeric);
    const double relative =
      tolerance * std::max(1.0, smallest_magnitude / std::max(most, 1e-300));
    const auto text = difference(densify(given), numeric, relative);
    if (!text.empty())
      return slot + "@GRAD against central differences: " + text;
  }
  return {};
}

std::string check_alone(const kernel_table& table, const op_case& backward,
                        const op_values& together) {
  for (const auto& [slot, values] : together) {
    const auto alone = run_op(table, only_output(backward, slot));
    const auto text = difference(alone, {{slot, values}}, 0);
    if (!text.empty())
      return "alone against all together: " + text;
  }
  return {};
}

} // namespace

std::string gradient_difference(const kernel_table& table,
                                const op_case& forward) {
  auto c = with_float_type(forward, dtype::float64);
  op_runner runner(table, c);
  const auto backward = backward_of(c, runner.run(c));
  const auto gradients = run_op(table, backward);
  for (const auto& slot : c.gradient->wanted) {
    const auto text = check_slot(runner, c, backward, gradients, slot);
    if (!text.empty())
      return text;
  }
  return check_alone(table, backward, gradients);
}

} // namespace troupe::test
