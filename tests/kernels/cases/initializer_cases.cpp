// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case filling(const std::string& type, ints dims, attribute_map attributes) {
  attributes.set("shape", std::move(dims));
  if (!attributes.has("dtype"))
    attributes.set("dtype", 5);
  return {.type = type,
          .inputs = {},
          .attributes = std::move(attributes),
          .step = {.step = 2, .seed = 12345}};
}

} // namespace

std::vector<op_case> initializer_cases() {
  return {
    filling("fill_constant", {3, 4}, {{"value", 2.5f}}),
    filling("fill_constant", {1}, {{"value", 7.0f}, {"dtype", 3}}),
    filling("fill_constant", {2}, {{"value", -3.0f}, {"dtype", 2}}),
    filling("fill_constant", {2}, {{"value", 1.0f}, {"dtype", 0}}),
    filling("fill_constant", {1}, {{"value", 0.0f}, {"str_value", "0.125"}}),
    filling("fill_constant", {1}, {{"value", 0.0f}, {"str_value", "-inf"}}),
    filling("fill_constant", {0, 3}, {{"value", 1.0f}}),
    filling("uniform_random", {17, 9}, {{"min", -0.5f}, {"max", 2.0f}}),
    filling("uniform_random", {5}, {{"seed", 3}}),
    filling("gaussian_random", {17, 9}, {{"mean", 1.0f}, {"std", 0.25f}}),
    filling("gaussian_random", {5}, {{"seed", 3}}),
    filling("truncated_gaussian_random", {31, 9},
            {{"mean", -1.0f}, {"std", 0.5f}}),
    filling("truncated_gaussian_random", {200}, {{"seed", 3}}),
  };
}

} // namespace troupe::test
