// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case top_k(op_value x, int k, int axis = -1, bool largest = true) {
  return {.type = "top_k_v2",
          .inputs = {{"X", {std::move(x)}}},
          .attributes = {{"k", k},
                         {"axis", axis},
                         {"largest", largest},
                         {"sorted", true}},
          .outputs = {{"Out", 1}, {"Indices", 1}}};
}

op_case accuracy(op_value indices, op_value label) {
  return {.type = "accuracy",
          .inputs = {{"Out", {random_values(indices.dims, 1)}},
                     {"Indices", {std::move(indices)}},
                     {"Label", {std::move(label)}}},
          .outputs = {{"Accuracy", 1}, {"Correct", 1}, {"Total", 1}}};
}

} // namespace

std::vector<op_case> metric_cases() {
  return {
    top_k(distinct_values({3, 7}, 1), 1),
    top_k(distinct_values({3, 7}, 1), 3),
    top_k(distinct_values({3, 7}, 1), 7),
    top_k(distinct_values({3, 7}, 1), 2, -1, false),
    top_k(distinct_values({4, 3}, 1), 2, 0),
    top_k(distinct_values({2, 5, 3}, 1), 2, 1),
    top_k(distinct_values({1}, 1), 1),
    top_k(distinct_values({33, 101}, 1), 5),
    top_k(distinct_values({0, 7}, 1), 2),
    top_k(values_of({1, 5}, {1, 2, 2, 0, 2}), 2),
    accuracy(random_indices({50, 1}, 1, 0, 4),
             random_indices({50, 1}, 2, 0, 4)),
    accuracy(random_indices({50, 3}, 1, 0, 9),
             random_indices({50, 1}, 2, 0, 9)),
    accuracy(random_indices({1, 1}, 1, 0, 1), random_indices({1, 1}, 2, 0, 1)),
    accuracy(random_indices({0, 1}, 1, 0, 1), random_indices({0, 1}, 2, 0, 1)),
  };
}

} // namespace troupe::test
