// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace troupe::graph {

/// Slots that `expose_sub_blocks` adds to an op that runs a block.
inline constexpr std::string_view outer_reads = "sub_block@READS";
inline constexpr std::string_view outer_writes = "sub_block@WRITES";

/// Attribute of ops that accumulate gradients over steps: the condition of the
/// branch that updates parameters with the sum.
inline constexpr std::string_view merge_condition = "grad_merge_cond_name";

/// Maximum nesting depth of blocks; blocks run by the main block have depth 1.
inline constexpr std::size_t max_nested_blocks = 32;
/// Maximum total number of ops and arguments in all sub-blocks. A block counts
/// once for each op that runs it, including the arguments in the slots above.
inline constexpr std::size_t max_nested_arguments = std::size_t{1} << 20;

/// True for the types of ops that run a block: conditional_block, while, their
/// gradients. Executors run them without a kernel from a kernel table.
bool is_control_flow(std::string_view op_type) noexcept;

/// Number of the block that a control-flow op runs (attribute sub_block).
std::optional<std::int32_t> sub_block_of(const op_desc& op);

/// Throws error(graph_invalid), naming op and block, if a block is missing,
/// runs itself or an outer block, or if blocks exceed the limits above. After
/// this check, every walk over blocks ends after a bounded time.
void check_sub_blocks(const program& p);

/// The arguments of the ops of block `index` that belong to the block's step
/// scope: its variables that are not persistable. A gradient block runs in the
/// scope of its forward block, so it also has the names of that block.
std::set<std::string, std::less<>> local_names(const program& p,
                                               std::int32_t index);

/// Returns a copy in which each control-flow op has two additional slots. The
/// first lists all variables outside its block that the ops of the block (and
/// of nested blocks) read before they write them. The second lists all
/// variables that they write. All other code can then treat the op like any
/// other. Persistable variables that only a sub-block declares are also
/// declared in the main block. Ops that accumulate gradients over steps, and
/// the ops of their condition and branch, get role Optimize. Idempotent.
///
/// Throws like `check_sub_blocks`.
program expose_sub_blocks(program p);

/// Calls `visit(op)` for each op of the main block and of all blocks that its
/// ops run. Throws like `check_sub_blocks`.
void for_each_op(const program& p,
                 const std::function<void(const op_desc&)>& visit);

/// Throws error(unsupported_op), naming op and gradient, if an op of a
/// sub-block completes the gradient of a parameter: gradients are merged over
/// devices only between ops of the main block. Also throws like
/// `check_sub_blocks`.
void check_gradients_in_main(const program& p);

} // namespace troupe::graph
