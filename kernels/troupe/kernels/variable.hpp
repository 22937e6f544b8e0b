// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Some rows of a tall matrix, such as the gradient of an embedding (Paddle's
/// SelectedRows). Row `rows[i]` of the whole [height, ...] tensor has the value
/// `values[i, ...]`. If a row occurs several times, its values are added.
///
/// If the host cannot read the device's memory, `rows` is empty, and `numbers`
/// has the rows in that memory instead. An entry may then be -1: it is no row,
/// and its values are zeros. How many different rows there are is thus never
/// needed on the host.
struct selected_rows {
  std::vector<std::int64_t> rows; ///< each in [0, height)
  std::int64_t height = 0;        ///< rows of the whole tensor
  tensor values;                  ///< [rows.size(), row extents...]
  tensor numbers = {};            ///< int64 [values.dims()[0]]
};

/// A list of tensors by index (Paddle's LoDTensorArray). Entries that were
/// never written have no memory.
using tensor_array = std::vector<tensor>;

class scope;

/// What a control-flow op keeps for its gradient op: the variables of its
/// sub-block, one scope per execution of the block.
struct step_scopes {
  std::vector<std::shared_ptr<scope>> steps;
};

/// A program's variable on one device. It holds nothing, a tensor, selected
/// rows, a tensor array, or step scopes. Thread rule: not synchronized; the
/// graph's edges order all accesses.
class variable {
public:
  variable() = default;
  variable(const variable& other);
  variable(variable&& other) noexcept { swap(other); }
  variable& operator=(variable other) noexcept {
    swap(other);
    return *this;
  }

  ///@{
  /// What the variable holds. `has_value` is true for any of the four.
  bool has_value() const noexcept { return held_ != 0; }
  bool is_tensor() const noexcept { return held_ == 1; }
  bool is_rows() const noexcept { return held_ == 2; }
  bool is_array() const noexcept { return held_ == 3; }
  bool is_scopes() const noexcept { return held_ == 4; }
  ///@}

  ///@{
  /// The value. Throw error(kernel_failure) if the variable holds something
  /// else.
  const tensor& as_tensor() const;
  tensor& as_tensor();
  const selected_rows& as_rows() const;
  selected_rows& as_rows();
  const tensor_array& as_array() const;
  tensor_array& as_array();
  const step_scopes& as_scopes() const;
  step_scopes& as_scopes();
  ///@}

  ///@{
  /// Replaces the value. Only the first call allocates; later calls reuse its
  /// memory.
  void set(tensor value);
  void set(selected_rows value);
  void set(tensor_array value);
  void set(step_scopes value);
  ///@}
  /// Releases the value. The variable then holds nothing.
  void clear() noexcept;

private:
  using content = std::variant<std::monostate, tensor, selected_rows,
                               tensor_array, step_scopes>;

  void swap(variable& other) noexcept {
    std::swap(content_, other.content_);
    std::swap(held_, other.held_);
  }
  template <class T>
  T& held(const char* wanted) const;
  template <class T>
  void hold(T value);

  /// Not freed when the variable is cleared. Separate from `held_`, to keep
  /// variables small: most accesses only check whether there is a value.
  std::unique_ptr<content> content_;
  std::uint8_t held_ = 0; ///< content_->index(); 0 if the variable is empty
};

} // namespace troupe
