// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::trace {

/// An op of `distance` steps before.
struct dependency {
  handle_id op = no_handle;
  std::uint32_t distance = 0;
};

/// Which ops wait for which ops: the graph without its variables. An op also
/// waits for itself in the previous step.
class op_graph {
public:
  /// The graph must outlive this object.
  explicit op_graph(const graph_info& graph);

  /// The ops that `op` waits for before it begins.
  std::span<const dependency> before(handle_id op) const;
  /// The ops that must have begun before `op` can end: the other ranks of a
  /// collective; of a `recv`, its `send`. Empty for other ops.
  std::span<const handle_id> partners(handle_id op) const;
  /// True for ops that merge values of devices or carry them between
  /// processes: collectives, updates that merge gradients, `send` and `recv`.
  bool merges(handle_id op) const { return merges_[op]; }
  /// False for variables and for ids that the graph does not have.
  bool is_op(handle_id id) const {
    return id < graph_.handles.size() && graph_.handles[id].is_op;
  }
  /// The process that runs a handle.
  std::size_t process_of(handle_id id) const;

  /// The graph as the trace has it.
  const graph_info& graph() const noexcept { return graph_; }

private:
  void find_dependencies();
  void find_ranks();

  const graph_info& graph_;
  std::vector<std::vector<dependency>> before_;
  std::vector<std::vector<handle_id>> partners_;
  std::vector<bool> merges_;
};

} // namespace troupe::trace
