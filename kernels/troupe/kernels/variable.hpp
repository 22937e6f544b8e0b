// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace troupe {

/// Some rows of a tall matrix: the gradient of an embedding. Row `rows[i]` of
/// the whole [height, ...] tensor has the value `values[i, ...]`. Rows may
/// occur several times; their values then add up (Paddle's SelectedRows).
struct selected_rows {
  std::vector<std::int64_t> rows; ///< each in [0, height)
  std::int64_t height = 0;        ///< rows of the whole tensor
  tensor values;                  ///< [rows.size(), row extents...]
};

/// A list of tensors by index (Paddle's LoDTensorArray); entries that nobody
/// wrote have no memory.
using tensor_array = std::vector<tensor>;

class scope;

/// What a control-flow op leaves for its gradient: the variables of its
/// sub-block, a scope for each time that the block ran.
struct step_scopes {
  std::vector<std::shared_ptr<scope>> steps;
};

/// The value of a program's variable on one device: nothing yet, a tensor,
/// selected rows, a tensor array, or step scopes. Thread rule: none of its own;
/// the graph's edges order all accesses.
class variable {
public:
  bool has_value() const noexcept { return value_.index() != 0; }
  bool is_tensor() const noexcept { return value_.index() == 1; }
  bool is_rows() const noexcept { return value_.index() == 2; }
  bool is_array() const noexcept { return value_.index() == 3; }
  bool is_scopes() const noexcept { return value_.index() == 4; }

  /// Throw error(kernel_failure) when the variable holds something else.
  const tensor& as_tensor() const;
  tensor& as_tensor();
  const selected_rows& as_rows() const;
  selected_rows& as_rows();
  const tensor_array& as_array() const;
  tensor_array& as_array();
  const step_scopes& as_scopes() const;
  step_scopes& as_scopes();

  void set(tensor value) { value_ = std::move(value); }
  void set(selected_rows value) { value_ = std::move(value); }
  void set(tensor_array value) { value_ = std::move(value); }
  void set(step_scopes value) { value_ = std::move(value); }
  /// Not inline: most of the values that a step passes by are empty.
  void clear() noexcept;

private:
  std::variant<std::monostate, tensor, selected_rows, tensor_array, step_scopes>
    value_;
};

} // namespace troupe
