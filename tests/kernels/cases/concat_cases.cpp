// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case concat(const std::vector<shape>& parts, int axis) {
  op_case c{.type = "concat",
            .inputs = {},
            .attributes = {{"axis", axis}},
            .gradient = gradient_slots{{"Out"}, {"X"}, {"X"}}};
  std::uint64_t seed = 1;
  for (const auto& part : parts)
    c.inputs["X"].push_back(random_values(part, seed++));
  return c;
}

op_case split(const shape& x, std::size_t parts, attribute_map attributes) {
  return {.type = "split",
          .inputs = {{"X", {random_values(x, 1)}}},
          .attributes = std::move(attributes),
          .outputs = {{"Out", parts}}};
}

op_case equally(const shape& x, int parts, int axis) {
  return split(x, static_cast<std::size_t>(parts),
               {{"num", parts}, {"axis", axis}});
}

op_case in_sections(const shape& x, ints sections, int axis) {
  const auto parts = sections.size();
  return split(x, parts,
               {{"num", 0}, {"sections", std::move(sections)}, {"axis", axis}});
}

} // namespace

std::vector<op_case> concat_cases() {
  return {
    concat({{2, 3}, {4, 3}}, 0),
    concat({{2, 3}, {2, 1}, {2, 4}}, 1),
    concat({{2, 3, 4}, {2, 3, 1}}, -1),
    concat({{2, 1, 4}, {2, 3, 4}, {2, 2, 4}}, 1),
    concat({{2, 3}}, 0),
    concat({{1}, {1}, {1}}, 0),
    concat({{0, 3}, {0, 4}}, 1),
    concat({{0, 3}, {2, 3}}, 0),
    forward_only(concat({{17, 33}, {17, 5}, {17, 65}}, 1)),
    equally({6, 4}, 3, 0),
    equally({2, 6, 3}, 2, 1),
    equally({2, 3, 4}, 4, -1),
    equally({3, 4}, 1, 0),
    equally({0, 4}, 2, 1),
    in_sections({6, 4}, {1, 3, 2}, 0),
    in_sections({2, 7}, {2, -1, 1}, 1),
    in_sections({3, 96}, {32, 32, 32}, -1),
  };
}

} // namespace troupe::test
