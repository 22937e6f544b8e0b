// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case reduction(const std::string& type, const shape& x,
                  attribute_map attributes = {}) {
  return {.type = type,
          .inputs = {{"X", {random_values(x, 1)}}},
          .attributes = std::move(attributes),
          .gradient = gradient_slots{{"Out"}, {"X"}, {"X"}}};
}

op_case along(const std::string& type, const shape& x, ints axes,
              bool keep = false, bool all = false) {
  return reduction(
    type, x,
    {{"dim", std::move(axes)}, {"keep_dim", keep}, {"reduce_all", all}});
}

void add_reductions(std::vector<op_case>& all, const std::string& type) {
  all.insert(all.end(),
             {
               along(type, {3, 4}, {0}),
               along(type, {3, 4}, {1}),
               along(type, {3, 4}, {-1}, true),
               along(type, {2, 3, 4}, {1}),
               along(type, {2, 3, 4}, {0, 2}),
               along(type, {2, 3, 4}, {0, 2}, true),
               along(type, {2, 3, 4}, {-1, -2}),
               along(type, {2, 3, 4}, {0, 1, 2}),
               along(type, {2, 3, 4}, {0}, false, true),
               along(type, {2, 3, 4}, {0}, true, true),
               along(type, {1}, {0}),
               along(type, {0, 4}, {1}),
               along(type, {0, 4}, {0}),
               forward_only(along(type, {65, 129}, {0})),
               forward_only(along(type, {65, 129}, {1})),
               forward_only(along(type, {5, 33, 17}, {1})),
               forward_only(along(type, {5, 33, 17}, {0}, false, true)),
             });
}

} // namespace

std::vector<op_case> reduce_cases() {
  std::vector<op_case> all = {
    reduction("mean", {3, 5}),
    reduction("mean", {1}),
    reduction("mean", {2, 3, 4}),
    reduction("mean", {0, 3}),
    forward_only(reduction("mean", {99, 1001})),
  };
  add_reductions(all, "reduce_mean");
  add_reductions(all, "reduce_sum");
  return all;
}

} // namespace troupe::test
