// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case unary(const std::string& type, op_value x, const std::string& kept,
              attribute_map attributes = {}) {
  return {.type = type,
          .inputs = {{"X", {std::move(x)}}},
          .attributes = std::move(attributes),
          .gradient = gradient_slots{{"Out"}, {kept}, {"X"}}};
}

/// Numbers where exp overflows or a function is flat, and 0.
op_value extremes() {
  return values_of({9}, {-1000, -90, -12, -1e-6, 0, 1e-6, 12, 90, 1000});
}

void add(std::vector<op_case>& all, const std::string& type,
         const std::string& kept, const attribute_map& attributes = {}) {
  for (const auto& dims :
       {shape{1}, shape{3, 5}, shape{2, 3, 2, 2}, shape{0, 4}})
    all.push_back(unary(type, distinct_values(dims, 3), kept, attributes));
  auto wide = random_values({17, 1023}, 4, -6, 6);
  all.push_back(forward_only(unary(type, std::move(wide), kept, attributes)));
  all.push_back(forward_only(unary(type, extremes(), kept, attributes)));
}

} // namespace

std::vector<op_case> activation_cases() {
  std::vector<op_case> all;
  add(all, "relu", "Out");
  add(all, "sigmoid", "Out");
  add(all, "tanh", "Out");
  add(all, "square", "X");
  add(all, "gelu", "X", {{"approximate", false}});
  add(all, "gelu", "X", {{"approximate", true}});
  return all;
}

} // namespace troupe::test
