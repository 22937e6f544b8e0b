// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/lod_sharing.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

/// The arguments of an op that runs a block, by name. An output hides an input
/// of the same name.
class outer_arguments {
public:
  /// `ctx` must outlive the object.
  explicit outer_arguments(const kernel_context& ctx);

  /// Null if there is no argument of that name.
  variable* find(std::string_view name) const;

private:
  std::unordered_map<std::string_view, variable*> by_name_;
};

/// Finds variables by name for the ops of a block: first in the block's scope,
/// then among the arguments of the op that runs the block. As in Paddle, names
/// in the scope hide outer ones. A gradient block thus sees the saved values of
/// variables that have changed since.
class block_scope {
public:
  /// All arguments must outlive the object. `locals`: names that belong to the
  /// scope.
  block_scope(scope& inside, const std::set<std::string, std::less<>>& locals,
              const outer_arguments& outside)
    : inside_(inside), locals_(locals), outside_(outside) {}

  /// Throws error(graph_invalid) for a name that is in neither.
  variable& find(std::string_view name) const;

private:
  scope& inside_;
  const std::set<std::string, std::less<>>& locals_;
  const outer_arguments& outside_;
};

/// Runs the ops of a block in order on one device.
class block_runner {
public:
  /// Throws error(unsupported_op) for an op without a kernel.
  block_runner(const graph::program& p, std::int32_t block,
               const kernel_table& kernels, device_kind kind);

  /// Runs all ops. An error names the op and its position in the block. If the
  /// step is stopped, throws error(cancelled) before the next op.
  void run(const block_scope& variables, kernel_context& ctx);

  /// Names that belong to the block's scope.
  const std::set<std::string, std::less<>>& locals() const noexcept {
    return locals_;
  }
  /// Adds such a name.
  void add_local(std::string name) { locals_.insert(std::move(name)); }

private:
  struct compiled_op {
    graph::op_desc desc;
    std::unique_ptr<kernel> code;
    lod_rule rule;
  };

  static void run_op(compiled_op& op, const block_scope& variables,
                     kernel_context& ctx);

  std::int32_t block_;
  std::vector<compiled_op> ops_;
  std::set<std::string, std::less<>> locals_;
};

} // namespace troupe::actors
