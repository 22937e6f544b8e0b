// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// How many variables a slot takes: 1, at most 1, at least 1, any number.
enum class slot_arity : std::uint8_t { one, optional, many, any };

/// A slot that an op type has.
struct slot_schema {
  std::string_view name;
  slot_arity arity = slot_arity::one;
};

/// One op and the block with its variables: what a shape function reads its
/// input shapes from and writes its output shapes to. An extent of -1 is
/// unknown until fed and fits any other.
class shape_inference {
public:
  /// Both outlive it; `vars` declares the variables of `op`.
  shape_inference(const op_desc& op, block& vars) : op_(op), vars_(vars) {}

  /// The op's attributes.
  const attribute_map& attributes() const noexcept { return op_.attributes; }
  ///@{
  /// How many variables are in a slot; 0 if the op lacks it.
  std::size_t num_inputs(std::string_view slot) const;
  std::size_t num_outputs(std::string_view slot) const;
  ///@}
  /// Whether the slot has a variable.
  bool has_input(std::string_view slot) const { return num_inputs(slot) > 0; }
  ///@{
  /// Declaration, extents and dtype of input `index` of `slot`, which is below
  /// `num_inputs(slot)`. Throws error(not_found) if nothing declares it.
  const var_desc& input(std::string_view slot, std::size_t index = 0) const;
  const shape& dims(std::string_view slot, std::size_t index = 0) const {
    return input(slot, index).dims;
  }
  dtype type(std::string_view slot, std::size_t index = 0) const {
    return input(slot, index).type;
  }
  ///@}

  /// Declares shape and dtype of an output; nothing if the op lacks the slot.
  /// Throws error(shape_mismatch) if a persistable variable has another shape.
  void output(std::string_view slot, const shape& dims, dtype type,
              std::size_t index = 0);

  /// Throws error(shape_mismatch) naming the op, the slot with its variable and
  /// shape, and `expected`, unless `condition` holds.
  void check(bool condition, std::string_view slot, std::string_view expected,
             std::size_t index = 0) const;
  /// Throws error(invalid_argument) naming the op and attribute unless
  /// `condition` holds.
  void check_attribute(bool condition, std::string_view attribute,
                       std::string_view expected) const;
  /// Throws error(dtype_mismatch) unless the input has one of the index types
  /// int32 and int64.
  void check_index_type(std::string_view slot) const;
  /// The value of an axis attribute as an index below `rank`; negative values
  /// count from the end. Throws error(invalid_argument).
  std::size_t axis(std::string_view attribute, std::int64_t value,
                   std::size_t rank) const;

private:
  std::string describe(std::string_view slot, std::size_t index) const;

  const op_desc& op_;
  block& vars_;
};

/// What a gradient maker knows: the forward op and whose gradients are wanted.
struct gradient_context {
  const op_desc& forward;
  std::function<bool(const std::string& variable)> wanted;
};

/// How the gradient of an op type is made.
///
/// Without `make` it is one op "<type>_grad" for each group: it has the forward
/// op's attributes, reads the slots in `reads` and the gradients of `outputs`,
/// and writes the gradients of those of the group's slots that are wanted.
/// Input gradient and weight gradient are groups of their own, the input's
/// first, so that schedules can delay the weight's.
struct gradient_rule {
  std::vector<std::vector<std::string_view>> groups; ///< input slots
  std::vector<std::string_view> reads;   ///< forward inputs and outputs
  std::vector<std::string_view> outputs; ///< gradients flow in through these
  std::vector<op_desc> (*make)(const gradient_context&) = nullptr;

  /// Whether ops of the type have gradients.
  bool differentiable() const noexcept { return !groups.empty(); }
};

/// What the graph layer knows of an op type.
struct op_schema {
  std::string_view type;
  std::vector<slot_schema> inputs;
  std::vector<slot_schema> outputs;
  /// Sets shapes and dtypes of the outputs.
  void (*infer)(shape_inference&) = nullptr;
  gradient_rule gradient = {};
  /// Attribute that puts the op into evaluation mode; empty if it has none.
  std::string_view is_test = {};
};

/// Schemas by op type. A value: users who add ops add entries.
using op_schema_table = std::map<std::string, op_schema, std::less<>>;

/// The op types that layers make, with Paddle's slots and attributes
/// (facts of op_compat.yaml; gradients are derived from the rules and have no
/// entries of their own).
op_schema_table op_schemas();

/// Throws error(unsupported_op) naming an op type that the table lacks.
const op_schema& find_schema(const op_schema_table& schemas, const op_desc& op);

/// Checks the op's slots against its schema and sets shapes and dtypes of its
/// output variables, which `vars` must declare.
/// Throws error(unsupported_op) for an unknown op type, error(graph_invalid)
/// for a missing or unknown slot, error(not_found) for an undeclared variable,
/// error(shape_mismatch | dtype_mismatch | invalid_argument) naming op, slot
/// and shapes.
void infer_shapes(const op_desc& op, block& vars,
                  const op_schema_table& schemas);

/// The gradient ops of `context.forward`, attributes and slots only: roles and
/// the names of gradients that several ops write are the caller's.
std::vector<op_desc> make_gradient(const op_schema& schema,
                                   const gradient_context& context);

} // namespace troupe::graph
