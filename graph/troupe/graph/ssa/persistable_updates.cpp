// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/persistable_updates.hpp>

namespace troupe::graph {

std::map<std::string_view, std::set<std::size_t>>
updating_devices(const ssa_graph& g) {
  std::map<std::string_view, std::set<std::size_t>> found;
  for (auto& v : g.vars)
    if (v.persistable && v.generator != no_handle)
      found[v.name].insert(v.device);
  return found;
}

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
