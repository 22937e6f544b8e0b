// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/accumulate_gradients.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/merging/merge_plan.hpp>
#include <troupe/graph/passes/sync_batch_norm.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

/// What a step's gradients count by (kernels/cpu/optimizer/accumulate.cpp). A
/// gradient is the mean over the samples of the loss that it comes from: those
/// of the batch, or those of the shard if devices train apart. If the caller
/// scales the loss, steps count alike.
std::string unit_of(const build_options& options) {
  if (options.scale != gradient_scale::coeff)
    return "steps";
  return options.strategy == merge_strategy::none ? "shard_samples"
                                                  : "batch_samples";
}

void require_no_accumulation(const block& b) {
  for (auto& op : b.ops)
    if (op.attributes.has(merge_condition))
      throw error{errc::invalid_argument,
                  "the program accumulates gradients itself "
                  "(GradientMergeOptimizer), so the executor cannot",
                  {.op_type = op.type}};
}

op_desc accumulation(const op_desc& completing, const merged_gradient& g,
                     const std::string& unit) {
  op_desc op;
  op.type = accumulate_type;
  op.set_input("X", {g.gradient});
  op.set_output("Out", {g.gradient});
  op.attributes.set("unit", unit);
  op.attributes.set("op_role", std::int32_t{role_backward});
  op.attributes.set("op_role_var", std::vector{g.parameter, g.gradient});
  // Then the gradient can be selected rows.
  if (completing.attributes.get_bool("is_sparse", false))
    op.attributes.set("is_sparse", true);
  return op;
}

// The op that updates running statistics of a batch norm has role Optimize,
// because it runs on devices without samples, too. It concerns each step.
bool belongs_to_update(const op_desc& op) {
  constexpr auto updating = role_optimize | role_lr_sched;
  return (op.role() & updating) != 0 && op.type != running_statistics_type;
}

void require_values_in_each_step(const ssa_graph& g, const op_handle& op) {
  for (auto id : op.inputs) {
    const auto& v = g.var(id);
    if (v.persistable || v.generator == no_handle
        || !g.op(v.generator).only_in_updates)
      continue;
    throw error{errc::graph_invalid,
                "gradients cannot be accumulated: an op of each step reads \""
                  + std::string{v.name} + "\", which only updates write",
                {.op = handle_name(g, op.id),
                 .op_type = op.desc->type,
                 .variable = std::string{v.name},
                 .call_stack = op.desc->call_stack()}};
  }
}

} // namespace

program accumulate_gradients(program p, const build_options& options) {
  auto& b = p.main();
  require_no_accumulation(b);
  const auto gradients = find_gradients(b);
  const auto unit = unit_of(options);
  std::vector<op_desc> ops;
  ops.reserve(b.ops.size() + gradients.size());
  auto next = gradients.begin();
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    ops.push_back(std::move(b.ops[i]));
    const auto completing = ops.size() - 1;
    for (; next != gradients.end() && next->complete_after == i; ++next)
      ops.push_back(accumulation(ops[completing], *next, unit));
  }
  b.ops = std::move(ops);
  return p;
}

void mark_updates(ssa_graph& g) {
  for (auto& op : g.ops)
    if (op.kind == op_kind::computation)
      op.only_in_updates = belongs_to_update(*op.desc);
  for (auto& op : g.ops)
    if (!op.only_in_updates && op.kind != op_kind::fetch)
      require_values_in_each_step(g, op);
}

} // namespace troupe::graph
