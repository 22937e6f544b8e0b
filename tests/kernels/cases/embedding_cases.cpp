// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case lookup(const shape& table, op_value ids, bool sparse,
               std::int64_t padding = -1) {
  return {
    .type = "lookup_table_v2",
    .inputs = {{"W", {random_values(table, 1)}}, {"Ids", {std::move(ids)}}},
    .attributes = {{"is_sparse", sparse}, {"padding_idx", padding}},
    .gradient = gradient_slots{{"Out"}, {"W", "Ids"}, {"W"}}};
}

op_value ids_of(std::vector<double> ids) {
  const shape dims{static_cast<std::int64_t>(ids.size())};
  return values_of(dims, std::move(ids), dtype::int64);
}

} // namespace

std::vector<op_case> embedding_cases() {
  std::vector<op_case> all;
  for (bool sparse : {false, true}) {
    all.push_back(lookup({10, 4}, ids_of({3, 0, 9}), sparse));
    all.push_back(lookup({10, 4}, ids_of({3, 7, 3, 3, 0, 7}), sparse));
    all.push_back(lookup({1, 1}, ids_of({0}), sparse));
    all.push_back(lookup({6, 3}, random_indices({2, 4}, 2, 0, 6), sparse));
    all.push_back(lookup({6, 3}, random_indices({4, 1}, 2, 0, 6), sparse));
    all.push_back(lookup({6, 3}, ids_of({}), sparse));
    all.push_back(forward_only(
      lookup({301, 65}, random_indices({17, 9}, 2, 0, 301), sparse)));
  }
  all.push_back(lookup({6, 3}, ids_of({5, 2, 2, 1, 0}), false, 2));
  all.push_back(lookup({6, 3}, ids_of({0, 0, 1}), false, 0));
  return all;
}

} // namespace troupe::test
