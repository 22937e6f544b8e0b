// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

#include <algorithm>
#include <iterator>

namespace troupe::test {

namespace {

op_value scalar(double value) {
  return values_of({1}, {double{static_cast<float>(value)}});
}

op_case sgd(const shape& dims, op_value grad) {
  return {.type = "sgd",
          .inputs = {{"Param", {random_values(dims, 1)}},
                     {"Grad", {std::move(grad)}},
                     {"LearningRate", {scalar(0.1)}}},
          .outputs = {{"ParamOut", 1}},
          .in_place = {{"ParamOut", "Param"}}};
}

op_case momentum(const shape& dims, op_value grad,
                 attribute_map attributes = {}) {
  attributes.set("mu", 0.9f);
  return {.type = "momentum",
          .inputs = {{"Param", {random_values(dims, 1)}},
                     {"Grad", {std::move(grad)}},
                     {"Velocity", {random_values(dims, 2)}},
                     {"LearningRate", {scalar(0.1)}}},
          .attributes = std::move(attributes),
          .outputs = {{"ParamOut", 1}, {"VelocityOut", 1}},
          .in_place = {{"ParamOut", "Param"}, {"VelocityOut", "Velocity"}}};
}

op_case adam(const shape& dims, op_value grad, attribute_map attributes = {}) {
  return {.type = "adam",
          .inputs = {{"Param", {random_values(dims, 1)}},
                     {"Grad", {std::move(grad)}},
                     {"LearningRate", {scalar(0.01)}},
                     {"Moment1", {random_values(dims, 2)}},
                     {"Moment2", {random_values(dims, 3, 0.01, 1)}},
                     {"Beta1Pow", {scalar(0.729)}},
                     {"Beta2Pow", {scalar(0.997)}}},
          .attributes = std::move(attributes),
          .outputs = {{"ParamOut", 1},
                      {"Moment1Out", 1},
                      {"Moment2Out", 1},
                      {"Beta1PowOut", 1},
                      {"Beta2PowOut", 1}},
          .in_place = {{"ParamOut", "Param"},
                       {"Moment1Out", "Moment1"},
                       {"Moment2Out", "Moment2"},
                       {"Beta1PowOut", "Beta1Pow"},
                       {"Beta2PowOut", "Beta2Pow"}}};
}

const attribute_map decay{{"regularization_method", "l2_decay"},
                          {"regularization_coeff", 0.01f}};
const attribute_map nesterov{{"use_nesterov", true}};
const attribute_map rescaled{{"rescale_grad", 0.25f}};
const attribute_map lazy{{"lazy_mode", true}};
const attribute_map own_betas{
  {"beta1", 0.8f}, {"beta2", 0.95f}, {"epsilon", 1e-3f}};

void add(std::vector<op_case>& all, const shape& dims, const op_value& grad) {
  auto more = update_cases(dims, grad);
  std::ranges::move(more, std::back_inserter(all));
}

/// As older programs have it: other ops advance the powers of beta.
op_case with_own_powers(op_case c) {
  for (auto slot : {"Beta1PowOut", "Beta2PowOut"}) {
    c.outputs.erase(slot);
    c.in_place.erase(slot);
  }
  return c;
}

/// Every output in a variable of its own.
op_case elsewhere(op_case c) {
  c.in_place.clear();
  return c;
}

} // namespace

std::vector<op_case> update_cases(const shape& dims, const op_value& grad) {
  return {sgd(dims, grad),
          momentum(dims, grad),
          momentum(dims, grad, decay),
          momentum(dims, grad, nesterov),
          momentum(dims, grad, rescaled),
          adam(dims, grad),
          adam(dims, grad, lazy),
          adam(dims, grad, own_betas)};
}

std::vector<op_case> optimizer_cases() {
  std::vector<op_case> all;
  for (const auto& dims :
       {shape{1}, shape{3, 5}, shape{4, 3, 3, 3}, shape{33, 65}})
    add(all, dims, random_values(dims, 4));
  add(all, {8, 3}, random_rows({8, 3}, {5, 2}, 4));
  add(all, {8, 3}, random_rows({8, 3}, {5, 2, 5, 5, 7, 2}, 4));
  add(all, {8, 3}, random_rows({8, 3}, {}, 4));
  add(all, {100, 17}, random_rows({100, 17}, {99, 0, 13, 99, 50}, 4));
  const auto dense = random_values({3, 5}, 4);
  const auto rows = random_rows({8, 3}, {5, 2, 5}, 4);
  all.push_back(with_own_powers(adam({3, 5}, dense)));
  all.push_back(with_own_powers(adam({8, 3}, rows)));
  for (auto c :
       {sgd({3, 5}, dense), momentum({3, 5}, dense), adam({3, 5}, dense),
        sgd({8, 3}, rows), momentum({8, 3}, rows), adam({8, 3}, rows, lazy)})
    all.push_back(elsewhere(std::move(c)));
  return all;
}

} // namespace troupe::test
