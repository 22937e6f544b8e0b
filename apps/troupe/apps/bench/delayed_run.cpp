// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/delayed_run.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/graph/ssa/topological_order.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

class delay_kernel final : public kernel {
public:
  delay_kernel(std::uint64_t ns, delay_kind how) : ns_(ns), how_(how) {}

  void run(kernel_context&) override {
    if (ns_ == 0)
      return;
    if (how_ == delay_kind::sleep) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(ns_));
      return;
    }
    const auto end = now_ns() + ns_;
    while (now_ns() < end) {
    }
  }

private:
  std::uint64_t ns_;
  delay_kind how_;
};

constexpr graph::op_kind special_kinds[] = {
  graph::op_kind::scale_loss_grad, graph::op_kind::all_reduce,
  graph::op_kind::reduce, graph::op_kind::broadcast, graph::op_kind::fetch};

/// Turns the op handles that the graph builder added into ordinary ops, whose
/// kernels have the name of their kind.
graph::ssa_graph only_computations(graph::ssa_graph g) {
  for (auto& op : g.ops)
    op.kind = graph::op_kind::computation;
  return g;
}

} // namespace

std::unique_ptr<kernel> make_delay_kernel(std::uint64_t ns, delay_kind how) {
  return std::make_unique<delay_kernel>(ns, how);
}

void use_delays(executor_options& options, const graph::program& program,
                const delay_table& delays, delay_kind how) {
  auto types = op_types_of(program);
  for (auto kind : special_kinds)
    types.emplace(to_string(kind));
  delays.require_known(types);
  auto kernels = std::make_shared<kernel_table>();
  for (const auto& type : types)
    kernels->add(type, device_kind::cpu,
                 [ns = delays.of(type).ns, how](const attribute_map&) {
                   return make_delay_kernel(ns, how);
                 });
  options.kernels = std::move(kernels);
  options.hooks.passes.emplace_back(only_computations);
  options.parameters = std::make_shared<scope>();
  arena memory{make_host_memory_source()};
  const auto nothing = tensor::make(memory, {1}, dtype::float32);
  for (auto& [name, declared] : program.main().vars)
    if (declared.persistable)
      options.parameters->var(name).set(nothing);
}

double delay_bounds::ideal_ns(std::size_t workers) const {
  return std::max(critical_path_ns, work_ns / static_cast<double>(workers));
}

delay_bounds bounds_of(const graph::ssa_graph& graph,
                       const delay_table& delays) {
  const auto delay_of = [&](handle_id id) {
    return graph.is_op(id)
             ? static_cast<double>(delays.of(graph.op(id).desc->type).ns)
             : 0.0;
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
