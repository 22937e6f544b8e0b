// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstdint>
#include <vector>

namespace troupe::cpu {

/// The gradient of a parameter as optimizers see it: a whole tensor, or rows
/// in rising order, each once, with duplicates added up in the order in which
/// they came. Keep one per kernel: its lists are reused from step to step.
class row_gradient {
public:
  /// Reads input Grad for a parameter of `dims`. Throws error(shape_mismatch)
  /// if it is the gradient of another shape, error(out_of_range) for a row
  /// outside the parameter, error(dtype_mismatch) unless float32. The value
  /// must stay unchanged until the last `for_each`.
  void read(const kernel_context& ctx, const shape& dims);

  /// Calls `update(offset, gradient, count)` for runs of the parameter that
  /// cover all of it; rows that do not occur have gradient zero.
  template <class Update>
  void for_each(Update update) const {
    for_each(update, update);
  }

  /// The same with `update_missing` for the rows that do not occur.
  template <class Update, class UpdateMissing>
  void for_each(Update update, UpdateMissing update_missing) const {
    if (dense_)
      return update(std::int64_t{0}, dense_.data<float>(), size_);
    auto next = rows_.begin();
    for (std::int64_t row = 0; row * width_ < size_; ++row)
      if (next != rows_.end() && next->row == row)
        update(row * width_, (next++)->values, width_);
      else
        update_missing(row * width_, zeros_.data(), width_);
  }

  /// The same for the rows that occur alone.
  template <class Update>
  void for_each_present(Update update) const {
    if (dense_)
      return update(std::int64_t{0}, dense_.data<float>(), size_);
    for (const auto& r : rows_)
      update(r.row * width_, r.values, width_);
  }

  bool is_dense() const noexcept { return static_cast<bool>(dense_); }
  /// Rows of which there are none: Paddle's optimizers then do nothing.
  bool empty() const noexcept { return !dense_ && rows_.empty(); }

  /// Lets go of the memory that `read` took.
  void clear() noexcept;

private:
  struct merged_row {
    std::int64_t row = 0;
    const float* values = nullptr;
  };

  void read_dense(const kernel_context& ctx, const shape& dims);
  void check(const selected_rows& grad, const shape& dims) const;
  void merge(const kernel_context& ctx, const selected_rows& grad);
  void add_up(const float* values, std::size_t first, std::size_t last,
              float* sum);

  tensor dense_;
  tensor sums_; // of rows that occur more than once
  std::vector<std::int64_t> order_;
  std::vector<merged_row> rows_;
  std::vector<float> zeros_;
  std::int64_t width_ = 0;
  std::int64_t size_ = 0;
};

} // namespace troupe::cpu
