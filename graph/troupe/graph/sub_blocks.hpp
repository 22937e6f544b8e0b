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

/// Attribute of ops that add up gradients over steps: the condition of the
/// branch that updates parameters with the sum.
inline constexpr std::string_view merge_condition = "grad_merge_cond_name";

/// How deep blocks may lie in each other: main's are at depth 1.
inline constexpr std::size_t max_nested_blocks = 32;
/// How many ops and arguments all sub-blocks may have together. A block counts
/// once for each op that runs it, with what that op lists in the slots above.
inline constexpr std::size_t max_nested_arguments = std::size_t{1} << 20;

/// True for the types of ops that run a block: conditional_block, while, their
/// gradients. Executors run them without a kernel of a table.
bool is_control_flow(std::string_view op_type) noexcept;

/// Number of the block that a control-flow op runs (attribute sub_block).
std::optional<std::int32_t> sub_block_of(const op_desc& op);

/// Throws error(graph_invalid) naming op and block if a block that runs is not
/// there, runs itself or an outer block, or if blocks exceed the limits above.
/// Whatever walks over blocks ends, and soon, once this has passed.
void check_sub_blocks(const program& p);

/// Those arguments of the ops of block `index` that live in the block's step
/// scope: its variables that are not persistable and, if it is the gradient of
/// another block, that block's, in whose scope it runs.
std::set<std::string, std::less<>> local_names(const program& p,
                                               std::int32_t index);

/// A copy in which each control-flow op lists, in two slots of its own, all
/// variables outside of its block that the ops of the block (and of the blocks
/// that those run) read before they write them, and all that they write. To
/// everyone else it is then an op like any other. Persistable variables that
/// only a sub-block declares are declared in the main block. Ops that add up
/// gradients over steps, and those of their condition and branch, get role
/// Optimize. Called twice, it changes nothing.
///
/// Throws like `check_sub_blocks`.
program expose_sub_blocks(program p);

/// Calls `visit(op)` for each op of the main block and of all blocks that
/// they run. Throws like `check_sub_blocks`.
void for_each_op(const program& p,
                 const std::function<void(const op_desc&)>& visit);

/// Throws error(unsupported_op), naming op and gradient, if an op of a
/// sub-block completes the gradient of a parameter: gradients are merged over
/// devices between ops of the main block alone. Also throws like
/// `check_sub_blocks`.
void check_gradients_in_main(const program& p);

} // namespace troupe::graph
