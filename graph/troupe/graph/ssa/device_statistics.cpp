// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/device_statistics.hpp>

namespace troupe::graph {

std::set<std::string_view> device_statistics(const ssa_graph& g) {
  constexpr auto updating = role_optimize | role_lr_sched;
  std::set<std::string_view> found;
  for (auto& v : g.vars) {
    if (!v.persistable || v.generator == no_handle)
      continue;
    const auto& by = g.op(v.generator);
    if (by.kind == op_kind::computation && (by.desc->role() & updating) == 0)
      found.insert(v.name);
  }
  return found;
}

} // namespace troupe::graph
