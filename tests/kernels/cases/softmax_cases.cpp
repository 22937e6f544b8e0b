// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case softmax(const shape& dims, int axis = -1, double range = 2) {
  return {.type = "softmax",
          .inputs = {{"X", {random_values(dims, 1, -range, range)}}},
          .attributes = {{"axis", axis}},
          .gradient = gradient_slots{{"Out"}, {"Out"}, {"X"}}};
}

op_case cross_entropy(op_value logits, op_value label,
                      attribute_map attributes = {}) {
  return {
    .type = "softmax_with_cross_entropy",
    .inputs = {{"Logits", {std::move(logits)}}, {"Label", {std::move(label)}}},
    .attributes = std::move(attributes),
    .outputs = {{"Softmax", 1}, {"Loss", 1}},
    .gradient = gradient_slots{{"Loss"}, {"Label", "Softmax"}, {"Logits"}}};
}

op_case hard(const shape& logits, const shape& label, std::int64_t classes,
             attribute_map attributes = {}) {
  return cross_entropy(random_values(logits, 1, -2, 2),
                       random_indices(label, 2, 0, classes),
                       std::move(attributes));
}

/// Distributions along the last axis.
op_value distributions(const shape& dims) {
  auto value = random_values(dims, 5, 0.1, 1);
  const auto classes = static_cast<std::size_t>(dims.dim(-1));
  for (std::size_t i = 0; i < value.elements.size(); i += classes) {
    double total = 0;
    for (std::size_t k = 0; k < classes; ++k)
      total += value.elements[i + k];
    for (std::size_t k = 0; k < classes; ++k)
      value.elements[i + k] /= total;
  }
  return value;
}

op_case soft(const shape& dims) {
  return cross_entropy(random_values(dims, 1, -2, 2), distributions(dims),
                       {{"soft_label", true}});
}

op_case ignoring(std::vector<double> labels, int ignored) {
  const shape dims{static_cast<std::int64_t>(labels.size()), 1};
  return cross_entropy(random_values({dims[0], 5}, 1),
                       values_of(dims, std::move(labels), dtype::int64),
                       {{"ignore_index", ignored}});
}

} // namespace

std::vector<op_case> softmax_cases() {
  return {
    softmax({3, 5}),
    softmax({1, 1}),
    softmax({4, 1}),
    softmax({7}),
    softmax({2, 3, 4}),
    softmax({2, 3, 4}, 0),
    softmax({2, 3, 4}, 1),
    softmax({2, 3, 4}, -2),
    softmax({0, 5}),
    forward_only(softmax({3, 5}, -1, 1000)),
    forward_only(softmax({31, 1001})),
    forward_only(softmax({2, 3, 17, 65})),
    hard({4, 7}, {4, 1}, 7),
    hard({4, 7}, {4}, 7),
    hard({1, 1}, {1, 1}, 1),
    hard({2, 3, 5}, {2, 3, 1}, 5),
    hard({0, 7}, {0, 1}, 7),
    ignoring({1, -100, 4, 0, -100}, -100),
    ignoring({1, 2, 2, 4}, 2),
    ignoring({255, 3}, 255),
    soft({4, 6}),
    soft({2, 3, 4}),
    forward_only(hard({33, 1001}, {33, 1}, 1001)),
    forward_only(soft({17, 130})),
    forward_only(cross_entropy(random_values({5, 9}, 1, -1000, 1000),
                               random_indices({5, 1}, 2, 0, 9))),
  };
}

} // namespace troupe::test
