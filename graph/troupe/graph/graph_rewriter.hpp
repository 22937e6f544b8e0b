// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// Makes a graph of another one's variables and of ops that come one by one,
/// for passes that add and replace ops. Variables keep their positions, and
/// until the end they are named by them, since ids depend on the number of ops.
class graph_rewriter {
public:
  using var_index = std::uint32_t;

  /// @param of outlives the rewriter; its variables have no generators yet
  explicit graph_rewriter(const ssa_graph& of);

  /// What the new graph will be, without arguments and edges.
  ssa_graph& made() noexcept { return made_; }
  const ssa_graph& made() const noexcept { return made_; }
  var_index index_of(handle_id old_var) const noexcept {
    return old_var - static_cast<handle_id>(old_.ops.size());
  }

  const op_desc* describe(op_desc desc) {
    return &sources_->made.emplace_back(std::move(desc));
  }
  std::string_view name(std::string text) {
    return sources_->undeclared.emplace_back(std::move(text));
  }
  /// Adds `op` as the generator of its outputs; returns its new id.
  handle_id add_op(op_handle op, std::span<const var_index> inputs,
                   std::span<const var_index> outputs);

  /// The graph, without edges. The rewriter is spent.
  ssa_graph finish();

private:
  /// Where an op's inputs, and behind them its outputs, begin.
  struct argument_range {
    std::size_t first;
    std::size_t inputs;
  };

  const ssa_graph& old_;
  ssa_graph made_;
  std::shared_ptr<handle_sources> sources_;
  std::vector<argument_range> ranges_; // by op
};

} // namespace troupe::graph
