// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case moving(const std::string& type, const shape& x,
               attribute_map attributes) {
  return {.type = type,
          .inputs = {{"X", {random_values(x, 1)}}},
          .attributes = std::move(attributes),
          .outputs = {{"Out", 1}, {"XShape", 1}},
          .gradient = gradient_slots{{"Out"}, {"XShape"}, {"X"}}};
}

op_case reshape(const shape& x, ints to) {
  return moving("reshape2", x, {{"shape", std::move(to)}});
}

op_case flatten(const shape& x, int start, int stop) {
  return moving("flatten_contiguous_range", x,
                {{"start_axis", start}, {"stop_axis", stop}});
}

op_case transpose(const shape& x, ints axes) {
  return moving("transpose2", x, {{"axis", std::move(axes)}});
}

op_case slice(const shape& x, ints axes, ints starts, ints ends,
              ints decrease = {}) {
  return {.type = "slice",
          .inputs = {{"Input", {random_values(x, 1)}}},
          .attributes = {{"axes", std::move(axes)},
                         {"starts", std::move(starts)},
                         {"ends", std::move(ends)},
                         {"decrease_axis", std::move(decrease)}},
          .gradient = gradient_slots{{"Out"}, {"Input"}, {"Input"}}};
}

/// The same case on integers, which have no gradient.
op_case on_integers(op_case c, const std::string& slot) {
  for (auto& value : c.inputs[slot])
    value = random_indices(value.dims, 3, -100, 100);
  c.gradient.reset();
  return c;
}

} // namespace

std::vector<op_case> movement_cases() {
  return {
    reshape({2, 6}, {3, 4}),
    reshape({2, 3, 4}, {0, -1}),
    reshape({2, 3, 4}, {-1}),
    reshape({2, 3, 4}, {0, 0, 2, -1}),
    reshape({1}, {1, 1, 1}),
    reshape({0, 3, 4}, {-1, 12}),
    on_integers(reshape({4, 1}, {-1}), "X"),
    flatten({2, 3, 4, 5}, 1, -1),
    flatten({2, 3, 4, 5}, 1, 2),
    flatten({2, 3, 4}, 0, -1),
    flatten({2, 3, 4}, 1, 1),
    flatten({0, 3, 4}, 1, -1),
    transpose({3, 4}, {1, 0}),
    transpose({2, 3, 4}, {0, 2, 1}),
    transpose({2, 3, 4}, {2, 0, 1}),
    transpose({2, 3, 4, 5}, {0, 2, 1, 3}),
    transpose({2, 3, 4, 2, 3}, {4, 1, 0, 3, 2}),
    transpose({1, 1}, {1, 0}),
    transpose({7}, {0}),
    transpose({0, 3, 4}, {0, 2, 1}),
    on_integers(transpose({3, 4}, {1, 0}), "X"),
    forward_only(transpose({3, 17, 5, 33}, {0, 2, 1, 3})),
    forward_only(transpose({65, 67}, {1, 0})),
    slice({5, 6}, {0}, {1}, {4}),
    slice({5, 6}, {1}, {-3}, {-1}),
    slice({5, 6}, {0, 1}, {1, 2}, {3, 100}),
    slice({3, 4, 5}, {-1}, {0}, {2}),
    slice({3, 4, 5}, {1}, {2}, {3}, {1}),
    slice({3, 4, 5}, {0, 2}, {1, 4}, {2, 5}, {0, 2}),
    slice({4}, {0}, {2}, {3}, {0}),
    slice({0, 4}, {1}, {1}, {3}),
    on_integers(slice({5, 6}, {1}, {0}, {1}), "Input"),
    forward_only(slice({17, 33, 9}, {1}, {5}, {29})),
  };
}

} // namespace troupe::test
