// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstdint>
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

/// The value of a program's variable on one device: nothing yet, a tensor, or
/// selected rows. Thread rule: none of its own; the graph's edges order all
/// accesses.
class variable {
public:
  bool has_value() const noexcept { return value_.index() != 0; }
  bool is_tensor() const noexcept { return value_.index() == 1; }
  bool is_rows() const noexcept { return value_.index() == 2; }

  /// Throw error(kernel_failure) when the variable holds something else.
  const tensor& as_tensor() const;
  tensor& as_tensor();
  const selected_rows& as_rows() const;
  selected_rows& as_rows();

  void set(tensor value) { value_ = std::move(value); }
  void set(selected_rows value) { value_ = std::move(value); }
  void clear() noexcept { value_ = std::monostate{}; }

private:
  std::variant<std::monostate, tensor, selected_rows> value_;
};

} // namespace troupe
