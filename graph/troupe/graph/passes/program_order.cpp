// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/program_order.hpp>

#include <troupe/graph/ssa/ssa_edges.hpp>

#include <set>
#include <vector>

namespace troupe::graph {

namespace {

// A collective belongs to all devices whose variables it uses. Other ops belong
// only to their own device: their variables may belong to the first device,
// because all devices share them.
std::set<std::size_t> devices_of(const ssa_graph& g, const op_handle& op) {
  std::set<std::size_t> devices{op.device};
  if (op.collective_index < 0)
    return devices;
  for (auto* vars : {&op.inputs, &op.outputs})
    for (auto id : *vars)
      devices.insert(g.var(id).device);
  return devices;
}

} // namespace

ssa_graph run_in_program_order(ssa_graph g) {
  std::vector<handle_id> first(g.devices.size(), no_handle);
  std::vector<handle_id> last(g.devices.size(), no_handle);
  for (auto& op : g.ops)
    for (auto device : devices_of(g, op)) {
      if (last[device] == no_handle)
        first[device] = op.id;
      else
        g.edges.push_back({last[device], op.id, edge_kind::order, 0});
      last[device] = op.id;
    }
  for (std::size_t device = 0; device < g.devices.size(); ++device)
    if (first[device] != last[device])
      g.edges.push_back({last[device], first[device], edge_kind::order, 1});
  merge_edges(g.edges);
  return g;
}

} // namespace troupe::graph
