// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/op_arguments.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// Bits of the attribute "op_role" (Paddle, op_proto_maker.h).
enum op_role : std::int32_t {
  role_forward = 0x0000,
  role_backward = 0x0001,
  role_optimize = 0x0002,
  role_rpc = 0x0004,
  role_dist = 0x0008,
  role_lr_sched = 0x0010,
  role_collective = 0x0020,
  role_loss =
    0x0100, ///< Forward|Loss made the loss, Backward|Loss its gradient
};

/// What a variable holds (numbers of Paddle's VarType.Type).
enum class var_kind : std::int32_t {
  dense = 7,         ///< LOD_TENSOR
  selected_rows = 8, ///< SELECTED_ROWS
  feed_minibatch = 9,
  fetch_list = 10,
  step_scopes = 11,
  tensor_array = 13,
  reader = 15,
  raw = 17,
};

/// Parts of a program file for which the struct has no member: attributes of
/// unknown type, version tables, fields of later versions. Stored as a
/// serialized Paddle message and written back with the struct. Empty in
/// programs that Troupe makes.
using unknown_fields = std::string;

/// Declaration of a variable in a block.
struct var_desc {
  std::string name;
  var_kind kind = var_kind::dense;
  dtype type = dtype::float32;
  shape dims; ///< -1 if unknown until fed
  std::int32_t lod_level = 0;
  bool persistable = false;  ///< outlives the step; stored in the scope
  bool is_parameter = false; ///< trainable; its gradient is merged over devices
  bool stop_gradient = false;
  bool need_check_feed = false; ///< an input of the program
  unknown_fields extra{};
};

/// One operator: type, variables by slot, attributes.
struct op_desc {
  std::string type;
  std::vector<op_slot> inputs;
  std::vector<op_slot> outputs;
  attribute_map attributes;
  unknown_fields extra{};

  ///@{
  /// Arguments of a slot; empty if the op has no such slot.
  const std::vector<std::string>& input(std::string_view slot) const;
  const std::vector<std::string>& output(std::string_view slot) const;
  ///@}
  ///@{
  /// Replaces the arguments of a slot. Adds the slot if the op lacks it.
  void set_input(std::string slot, std::vector<std::string> arguments);
  void set_output(std::string slot, std::vector<std::string> arguments);
  ///@}
  ///@{
  /// The slot's only argument. Throws error(graph_invalid) if there is not
  /// exactly one.
  const std::string& only_input(std::string_view slot) const;
  const std::string& only_output(std::string_view slot) const;
  ///@}
  ///@{
  /// Names of all inputs or outputs, slot by slot, including duplicates.
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  ///@}

  /// Attribute "op_role"; role_forward if absent.
  std::int32_t role() const;
  /// Attribute "op_role_var" as (parameter, gradient) pairs. Throws
  /// error(graph_invalid) on an odd number of names.
  std::vector<std::pair<std::string, std::string>> role_vars() const;
  /// Attribute "op_callstack": where the user's program created this op.
  std::vector<std::string> call_stack() const;
};

/// A list of ops with the variables they use.
struct block {
  std::int32_t index = 0;
  std::int32_t parent = -1;
  std::int32_t forward_block = -1;
  std::map<std::string, var_desc, std::less<>> vars;
  std::vector<op_desc> ops;
  unknown_fields extra{};

  ///@{
  /// The variable declared under that name in this block; null if there is
  /// none.
  const var_desc* find_var(std::string_view name) const;
  var_desc* find_var(std::string_view name);
  ///@}
  /// The same, but throws error(not_found), naming the variable, if there is
  /// none.
  const var_desc& var(std::string_view name) const;
  /// Adds a declaration, or replaces the one with the same name.
  var_desc& add_var(var_desc desc);
};

/// A program: Paddle's ProgramDesc as C++ values. `blocks[0]` is the main one.
struct program {
  std::vector<block> blocks{1};
  std::int64_t version = 0;
  unknown_fields extra{};

  ///@{
  /// The main block.
  block& main() { return blocks.front(); }
  const block& main() const { return blocks.front(); }
  ///@}
};

/// Name of the loss, before any scaling for mixed precision. This is the output
/// of the op with role Forward|Loss. If there is no such op, it is the variable
/// whose gradient the op with role Backward|Loss writes. Throws
/// error(not_found) if the program has neither op.
std::string find_loss(const program& p);

/// Names of the variables that must be fed, sorted: dense, not persistable, and
/// read before any op writes them. Ops of the main block and of blocks that
/// these ops run are considered. The op `feed` does not count as a writer.
std::vector<std::string> feed_names(const program& p);

/// "x@GRAD".
std::string gradient_name(std::string_view variable);

/// Returns a copy for evaluation. It has no backward, optimizer, learning-rate
/// or communication ops. Variables that no remaining op uses are removed,
/// except inputs of the program. Attribute is_test is true on batch_norm,
/// dropout and every other op that has it.
program clone_for_test(const program& p);

} // namespace troupe::graph
