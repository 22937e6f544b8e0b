// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/batch_users.hpp>

#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>

namespace troupe::graph {

namespace {

bool uses_batch(const op_desc& op) {
  static const auto schemas = op_schemas();
  constexpr auto not_forward = role_backward | role_optimize | role_lr_sched;
  if ((op.role() & not_forward) != 0)
    return false;
  if (sub_block_of(op))
    return true;
  const auto known = schemas.find(op.type);
  return known == schemas.end() || known->second.uses_batch;
}

bool needs_count(const op_handle& op) {
  return op.kind == op_kind::scale_loss_grad
         || (op.kind == op_kind::computation && uses_batch(*op.desc));
}

} // namespace

void order_batch_users(ssa_graph& g) {
  const auto count =
    std::ranges::find(g.ops, op_kind::count_samples, &op_handle::kind);
  if (count == g.ops.end())
    return;
  for (auto& o : g.ops)
    if (needs_count(o))
      g.edges.push_back({count->id, o.id, edge_kind::order, 0});
  merge_edges(g.edges);
}

} // namespace troupe::graph
