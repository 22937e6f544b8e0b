// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/delayed_run.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/graph/ssa/topological_order.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

namespace troupe::apps {

namespace {

class no_kernel final : public kernel {
public:
  void run(kernel_context&) override {}
};

constexpr graph::op_kind special_kinds[] = {
  graph::op_kind::scale_loss_grad, graph::op_kind::all_reduce,
  graph::op_kind::reduce, graph::op_kind::broadcast, graph::op_kind::fetch};

/// A program may have ops without kernels: a dry run needs none.
void need_no_kernels(executor_options& options,
                     const std::set<std::string, std::less<>>& types) {
  auto kernels = std::make_shared<kernel_table>(kernels_for(options.devices));
  for (const auto& id : options.devices)
    for (const auto& type : types)
      if (!kernels->has(type, id.kind))
        kernels->add(type, id.kind, [](const attribute_map&) {
          return std::make_unique<no_kernel>();
        });
  options.kernels = std::move(kernels);
}

/// Turns off the passes that make ops of other types.
void make_no_other_ops(executor_options& options) {
  run_ops_as_written(options);
  options.lowering.gather_products = false;
  options.lowering.merge_in_updates = false;
}

} // namespace

void run_ops_as_written(executor_options& options) {
  options.lowering.fuse_all_reduce_bytes = 0;
  options.lowering.fuse_batch_norms = false;
  options.lowering.recompute_activations = false;
  options.lowering.separate_shape_inputs = false;
}

void spend_time(std::uint64_t ns, delay_kind how) {
  if (ns == 0)
    return;
  if (how == delay_kind::sleep) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    return;
  }
  const auto end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

void use_delays(executor_options& options, const graph::program& program,
                const delay_table& delays, delay_kind how,
                std::shared_ptr<const op_delays> plan) {
  auto types = op_types_of(program);
  need_no_kernels(options, types);
  for (auto kind : special_kinds)
    types.emplace(to_string(kind));
  if (delays.costs())
    for (const auto& id : options.devices)
      for (const auto& type : options.kernels->op_types(id.kind))
        types.insert(type);
  else
    make_no_other_ops(options);
  delays.require_known(types);
  options.hooks.dry_run = true;
  options.hooks.dry_run_op = [how, plan = std::move(plan)](handle_id op) {
    spend_time(plan->ns[op], how);
  };
}

op_delays plan_delays(const executor& exe, const delay_table& delays) {
  const auto graph = exe.trace_head().graph;
  op_delays plan;
  plan.ns.resize(graph.handles.size());
  for (handle_id id = 0; id < graph.handles.size(); ++id) {
    const auto& h = graph.handles[id];
    if (!h.is_op)
      continue;
    const auto* row = delays.costs() && !delays.names_type(h.type)
                        ? delays.costs()->find(graph, id)
                        : nullptr;
    if (row) {
      plan.ns[id] = static_cast<std::uint64_t>(row->ns + 0.5);
      continue;
    }
    plan.ns[id] = delays.of(h.type).ns;
    if (delays.costs() && !delays.names_type(h.type)
        && !delays.names_type("*")) {
      ++plan.unknown;
      plan.unknown_types.insert(h.type);
    }
  }
  return plan;
}

double delay_bounds::ideal_ns(std::size_t workers) const {
  return std::max(critical_path_ns, work_ns / static_cast<double>(workers));
}

delay_bounds bounds_of(const graph::ssa_graph& graph, const op_delays& delays) {
  const auto delay_of = [&](handle_id id) {
    return static_cast<double>(delays.ns[id]);
  };
  std::vector<std::vector<handle_id>> next(graph.size());
  for (auto& e : graph.edges)
    if (e.distance == 0)
      next[e.from].push_back(e.to);
  delay_bounds bounds;
  std::vector<double> begin(graph.size());
  for (auto id : topological_order(graph)) {
    const auto end = begin[id] + delay_of(id);
    bounds.work_ns += delay_of(id);
    bounds.critical_path_ns = std::max(bounds.critical_path_ns, end);
    for (auto to : next[id])
      begin[to] = std::max(begin[to], end);
  }
  return bounds;
}

} // namespace troupe::apps
