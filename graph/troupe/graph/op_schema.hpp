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

/// How many variables a slot takes: exactly 1, at most 1, at least 1, any
/// number.
enum class slot_arity : std::uint8_t { one, optional, many, any };

/// A slot that an op type has.
struct slot_schema {
  std::string_view name;
  slot_arity arity = slot_arity::one;
};

/// One op and the block that declares its variables. A shape function reads
/// input shapes and writes output shapes through it. An extent of -1 is unknown
/// until fed and matches any other.
class shape_inference {
public:
  /// `op` and `vars` must outlive the object. `vars` declares the variables of
  /// `op`.
  shape_inference(const op_desc& op, block& vars) : op_(op), vars_(vars) {}

  /// The op's attributes.
  const attribute_map& attributes() const noexcept { return op_.attributes; }
  ///@{
  /// Number of variables in a slot; 0 if the op lacks the slot.
  std::size_t num_inputs(std::string_view slot) const;
  std::size_t num_outputs(std::string_view slot) const;
  ///@}
  /// True if the slot has a variable.
  bool has_input(std::string_view slot) const { return num_inputs(slot) > 0; }
  ///@{
  /// Declaration, extents and dtype of input `index` of `slot`. `index` must be
  /// less than `num_inputs(slot)`. Throws error(not_found) if the variable is
  /// not declared.
  const var_desc& input(std::string_view slot, std::size_t index = 0) const;
  const shape& dims(std::string_view slot, std::size_t index = 0) const {
    return input(slot, index).dims;
  }
  dtype type(std::string_view slot, std::size_t index = 0) const {
    return input(slot, index).type;
  }
  ///@}

  /// Sets the shape and dtype of an output. Does nothing if the op lacks the
  /// slot. Throws error(shape_mismatch) if the output is persistable and
  /// already has another shape.
  void output(std::string_view slot, const shape& dims, dtype type,
              std::size_t index = 0);

  /// Unless `condition` holds, throws error(shape_mismatch) naming the op, the
  /// slot, its variable and shape, and `expected`.
  void check(bool condition, std::string_view slot, std::string_view expected,
             std::size_t index = 0) const;
  /// Unless `condition` holds, throws error(invalid_argument) naming the op and
  /// the attribute.
  void check_attribute(bool condition, std::string_view attribute,
                       std::string_view expected) const;
  /// Throws error(dtype_mismatch) unless the input has dtype int32 or int64.
  void check_index_type(std::string_view slot) const;
  /// Converts the value of an axis attribute to an index less than `rank`.
  /// Negative values count from the end. Throws error(invalid_argument) if it
  /// is out of range.
  std::size_t axis(std::string_view attribute, std::int64_t value,
                   std::size_t rank) const;

private:
  std::string describe(std::string_view slot, std::size_t index) const;

  const op_desc& op_;
  block& vars_;
};

/// Input of a gradient maker: the forward op, and which variables need a
/// gradient.
struct gradient_context {
  const op_desc& forward;
  std::function<bool(const std::string& variable)> wanted;
};

/// How the gradient ops of an op type are made.
///
/// Without `make`, there is one op "<type>_grad" per group. It has the forward
/// op's attributes. It reads the slots in `reads` and the gradients of
/// `outputs`. It writes the gradients of the group's slots that are needed.
/// Input gradient and weight gradient are separate groups, the input's first,
/// so that schedulers can delay the weight's.
struct gradient_rule {
  /// Input slots. Without groups, ops of this type have no gradients.
  std::vector<std::vector<std::string_view>> groups = {};
  std::vector<std::string_view> reads = {}; ///< forward inputs and outputs
  /// slots whose gradients are read
  std::vector<std::string_view> outputs = {};
  std::vector<op_desc> (*make)(const gradient_context&) = nullptr;
};

/// What the graph layer knows about an op type.
struct op_schema {
  std::string_view type;
  std::vector<slot_schema> inputs = {};
  std::vector<slot_schema> outputs = {};
  /// Sets the shapes and dtypes of the outputs.
  void (*infer)(shape_inference&) = nullptr;
  gradient_rule gradient = {};
  /// Name of the attribute that selects evaluation mode; empty if there is
  /// none.
  std::string_view is_test = {};
  /// True if kernels read which samples of the batch a shard has, or how many
  /// the batch has: `step_info::first_sample`, `batch_samples`.
  bool uses_batch = false;
};

/// Schemas by op type. A value type: users can add entries for their own ops.
using op_schema_table = std::map<std::string, op_schema, std::less<>>;

/// The op types that layers use, with Paddle's slots and attributes (from
/// op_compat.yaml). Gradient ops have no entries: they are derived from
/// gradient rules.
op_schema_table op_schemas();

/// Returns the schema of an op. Throws error(unsupported_op), naming the op
/// type, if the table has none.
const op_schema& find_schema(const op_schema_table& schemas, const op_desc& op);

/// Checks the op's slots against its schema and sets the shapes and dtypes of
/// its output variables. `vars` must declare the outputs. Throws
/// error(unsupported_op) for an unknown op type, error(graph_invalid) for a
/// missing or unknown slot, error(not_found) for an undeclared variable,
/// error(shape_mismatch | dtype_mismatch | invalid_argument) naming op, slot
/// and shapes.
void infer_shapes(const op_desc& op, block& vars,
                  const op_schema_table& schemas);

/// Makes the gradient ops of `context.forward` with their attributes and slots.
/// The caller sets roles and renames gradients that several ops write.
std::vector<op_desc> make_gradient(const op_schema& schema,
                                   const gradient_context& context);

} // namespace troupe::graph
