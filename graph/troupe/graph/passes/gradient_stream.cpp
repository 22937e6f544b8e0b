// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/gradient_stream.hpp>

#include <algorithm>
#include <ranges>
#include <vector>

namespace troupe::graph {

namespace {

bool is_backward(const op_handle& op) {
  return op.kind == op_kind::computation && op.stream == stream_kind::compute
         && (op.desc->role() & role_backward) != 0;
}

bool is_update(const op_handle& op) {
  return op.kind == op_kind::computation
         && (op.desc->role() & role_optimize) != 0;
}

/// The ops that read each variable handle, by number of the variable.
std::vector<std::vector<handle_id>> readers_by_variable(const ssa_graph& g) {
  std::vector<std::vector<handle_id>> readers(g.vars.size());
  for (auto& op : g.ops)
    for (auto id : op.inputs)
      readers[id - g.ops.size()].push_back(op.id);
  return readers;
}

} // namespace

ssa_graph move_weight_gradients(ssa_graph g) {
  const auto readers = readers_by_variable(g);
  const auto may_wait = [&](handle_id reader) {
    const auto& op = g.op(reader);
    return op.collective_index >= 0 || is_update(op)
           || (op.stream == stream_kind::gradient && op.desc->type == "sum");
  };
  const auto is_awaited_late = [&](handle_id written) {
    const auto& by = readers[written - g.ops.size()];
    return !by.empty() && std::ranges::all_of(by, may_wait);
  };
  for (auto& op : g.ops | std::views::reverse)
    if (is_backward(op) && !op.outputs.empty()
        && std::ranges::all_of(op.outputs, is_awaited_late))
      op.stream = stream_kind::gradient;
  return g;
}

} // namespace troupe::graph
