// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/dtype.hpp>
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

/// What a program file says and the struct it belongs to has no member for
/// (attributes of unknown type, version tables, fields of later versions), as
/// a serialized message of Paddle's. Written back with the struct; empty in
/// programs made here.
using unknown_fields = std::string;

/// Declaration of a variable in a block.
struct var_desc {
  std::string name;
  var_kind kind = var_kind::dense;
  dtype type = dtype::float32;
  shape dims; ///< -1 where known only when fed
  std::int32_t lod_level = 0;
  bool persistable = false;  ///< outlives the step: lives in the scope
  bool is_parameter = false; ///< trained; its gradient is merged over devices
  bool stop_gradient = false;
  bool need_check_feed = false; ///< an input of the program
  unknown_fields extra{};
};

/// A slot of an op and the names of the variables in it.
struct op_slot {
  std::string name;
  std::vector<std::string> arguments;
  friend bool operator==(const op_slot&, const op_slot&) = default;
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
  /// Gives a slot these arguments instead of those that it has; adds it if the
  /// op lacks it.
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
  /// Names of all inputs (outputs), slots in order, duplicates kept.
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  ///@}

  /// Attribute "op_role"; role_forward if absent.
  std::int32_t role() const;
  /// Attribute "op_role_var" as (parameter, gradient) pairs. Throws
  /// error(graph_invalid) on an odd number of names.
  std::vector<std::pair<std::string, std::string>> role_vars() const;
  /// Attribute "op_callstack": where the user's program made this op.
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
  /// The declaration of that name in this block; null if there is none.
  const var_desc* find_var(std::string_view name) const;
  var_desc* find_var(std::string_view name);
  ///@}
  /// Throws error(not_found) naming the variable.
  const var_desc& var(std::string_view name) const;
  /// Adds a declaration; a variable of that name is replaced.
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

/// Name of the loss: the output of the op with role Forward|Loss, else what the
/// op with role Backward|Loss writes the gradient of; before it is scaled for
/// mixed precision. Throws error(not_found) if the program has neither.
std::string find_loss(const program& p);

/// Names that must be fed: dense, not persistable, read by an op of the main
/// block, or of a block that one runs, before any op wrote them (the op `feed`
/// does not count as a writer). Sorted.
std::vector<std::string> feed_names(const program& p);

/// "x@GRAD".
std::string gradient_name(std::string_view variable);

/// A copy for evaluation: without backward, optimizer, learning-rate and
/// communication ops, without variables that no remaining op uses (inputs of
/// the program stay), and with attribute is_test = true on ops that know it
/// (batch_norm, dropout, and all that carry the attribute).
program clone_for_test(const program& p);

} // namespace troupe::graph
