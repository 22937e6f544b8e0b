// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case binary(const std::string& type, const shape& x, const shape& y,
               int axis) {
  return {
    .type = type,
    .inputs = {{"X", {random_values(x, 1)}}, {"Y", {random_values(y, 2)}}},
    .attributes = {{"axis", axis}},
    .gradient = gradient_slots{{"Out"}, {"X", "Y"}, {"X", "Y"}}};
}

std::vector<op_case> cases_of(const std::string& type) {
  return {
    binary(type, {2, 3}, {2, 3}, -1),
    binary(type, {1}, {1}, -1),
    binary(type, {5, 7}, {1}, -1),
    binary(type, {2, 3, 4}, {4}, -1),
    binary(type, {2, 3, 4}, {3, 4}, -1),
    binary(type, {2, 3, 4}, {2}, 0),
    binary(type, {2, 3, 4}, {2, 3}, 0),
    binary(type, {2, 3, 4, 5}, {3}, 1),
    binary(type, {2, 3, 4, 5}, {3, 4}, 1),
    binary(type, {2, 3, 4}, {1, 3, 1}, -1),
    binary(type, {2, 3, 4}, {3, 1}, 1),
    binary(type, {2, 1, 4}, {2, 3, 1}, -1),
    binary(type, {4}, {3, 4}, -1),
    binary(type, {0, 3}, {3}, -1),
    binary(type, {0, 3}, {0, 3}, -1),
    forward_only(binary(type, {33, 65}, {65}, -1)),
    forward_only(binary(type, {33, 65}, {33, 65}, -1)),
    forward_only(binary(type, {3, 17, 9, 9}, {17}, 1)),
    forward_only(binary(type, {3, 17, 9, 9}, {3, 17}, 0)),
    forward_only(binary(type, {37, 29}, {37}, 0)),
  };
}

} // namespace

std::vector<op_case> elementwise_cases() {
  std::vector<op_case> all;
  for (auto type : {"elementwise_add", "elementwise_sub", "elementwise_mul"})
    for (auto& c : cases_of(type))
      all.push_back(std::move(c));
  return all;
}

} // namespace troupe::test
