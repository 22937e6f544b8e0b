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

/// Builds a graph from the variables of another graph and from ops that are
/// added one by one. For passes that add and replace ops. Variables keep their
/// positions. Until `finish` they are identified by position, because ids
/// depend on the number of ops.
class graph_rewriter {
public:
  using var_index = std::uint32_t;

  /// @param of must outlive the rewriter; copied variables have no generators
  /// yet
  explicit graph_rewriter(const ssa_graph& of);

  /// The new graph so far, without arguments and edges.
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

  /// Returns the graph, without edges. The rewriter must not be used
  /// afterwards.
  ssa_graph finish();

private:
  /// Start of an op's inputs, which its outputs follow.
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
