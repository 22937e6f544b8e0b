// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/variable_uses.hpp>

#include <troupe/graph/argument.hpp>

#include <string>

namespace troupe::graph {

namespace {

template <class Visit>
void for_each_argument(const std::vector<op_slot>& slots, Visit visit) {
  for (auto& slot : slots)
    for (auto& name : slot.arguments)
      if (names_variable(name))
        visit(name);
}

} // namespace

use_map find_uses(const block& b) {
  use_map uses;
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    for_each_argument(b.ops[i].inputs, [&](const std::string& name) {
      uses[name].readers.push_back(i);
    });
    for_each_argument(b.ops[i].outputs, [&](const std::string& name) {
      uses[name].writers.push_back(i);
    });
  }
  return uses;
}

} // namespace troupe::graph
