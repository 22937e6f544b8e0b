// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/product/parallel_product.hpp>
#include <troupe/kernels/kernel.hpp>

#include <troupe/base/assert.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::cpu {

/// What happens to rows that occur several times in a gradient. `add_up`: they
/// are added up in their original order, and all rows are then in ascending
/// order. `keep`: each stays in place, for optimizers to which that makes no
/// difference.
enum class repeated_rows : std::uint8_t { add_up, keep };

/// The gradient of a parameter as optimizers see it: a whole tensor, the sum of
/// several tensors, a sum of products that is computed here, or rows. A kernel
/// keeps one and reuses its lists from step to step.
class row_gradient {
public:
  /// @param factors how products round their factors
  explicit row_gradient(precision factors) : sum_(factors) {}
  row_gradient() : row_gradient(precision::float32) {}

  /// Reads input Grad for a parameter of `dims`: the sum of its arguments in
  /// their order, without empty ones; or rows, if there is one argument and it
  /// is rows. If the op has inputs X and Out@GRAD instead, the gradient is the
  /// sum of X^T Out@GRAD, for the parameter as the matrix that attribute
  /// y_num_col_dims makes of it. Throws error(shape_mismatch) if the gradient
  /// has another shape, error(out_of_range) for a row outside the parameter,
  /// error(dtype_mismatch) unless float32, error(kernel_failure) for rows
  /// beside another gradient. Values must stay unchanged until the last
  /// `for_each`.
  void read(const kernel_context& ctx, const shape& dims,
            repeated_rows repeated = repeated_rows::add_up) {
    read(ctx, dims, nullptr, repeated);
  }
  /// The same, with a dense gradient in the layout from `update_layout`. All
  /// offsets are into memory of that layout.
  void read(const kernel_context& ctx, const shape& dims,
            const std::shared_ptr<const layout>& format,
            repeated_rows repeated = repeated_rows::add_up);

  /// Calls `update(offset, gradient, count)` for runs that cover the whole
  /// parameter, on several workers at once. Missing rows have gradient zero.
  /// Repeated rows must have been added up.
  template <class Update>
  void for_each(const kernel_context& ctx, Update update) {
    for_each(ctx, update, update);
  }

  /// The same, with `update_missing` for rows that the gradient lacks.
  template <class Update, class UpdateMissing>
  void for_each(const kernel_context& ctx, Update update,
                UpdateMissing update_missing) {
    if (is_dense())
      return for_each_range(ctx, update);
    in_rows(ctx, height_, width_, [&](std::int64_t first, std::int64_t count) {
      for_each_row(first, count, update, update_missing);
    });
  }

  /// The same, run by run from first to last, for updates that add something
  /// up. Not for products.
  template <class Update>
  void for_each_in_turn(Update update) const {
    TROUPE_ASSERT(factors_.empty());
    if (is_dense())
      return for_each_piece(0, size_, update);
    for_each_row(0, height_, update, update);
  }

  /// The same for the gradient's own rows only, one after the other.
  template <class Update>
  void for_each_present(const kernel_context& ctx, Update update) {
    if (is_dense())
      return for_each_range(ctx, update);
    for (const auto& r : rows_)
      update(r.row * width_, r.values, width_);
  }

  /// The same, for an update that reads `param` at these rows, which may be
  /// anywhere: upcoming rows are prefetched. Workers share the rows by position
  /// in the parameter, so that a row that occurs twice is updated in order.
  template <class Update>
  void for_each_present(const kernel_context& ctx, const float* param,
                        Update update) {
    if (is_dense())
      return for_each_range(ctx, update);
    const auto cost =
      static_cast<std::int64_t>(rows_.size()) * std::max(width_, row_cost);
    const even_cut cut{height_,
                       worthwhile_parts(ctx.workers(), cost, least_elements)};
    ctx.in_parts(cut.parts(), [&](std::size_t i) {
      const auto ahead = rows_ahead * cut.parts();
      const auto first = cut.first(i), last = first + cut.size(i);
      const auto is_here = [=](const merged_row& r) {
        return r.row >= first && r.row < last;
      };
      for (std::size_t at = 0; at < rows_.size(); ++at) {
        if (const auto& next = rows_[std::min(at + ahead, rows_.size() - 1)];
            is_here(next))
          __builtin_prefetch(param + next.row * width_, 1);
        if (is_here(rows_[at]))
          update(rows_[at].row * width_, rows_[at].values, width_);
      }
    });
  }

  bool is_dense() const noexcept {
    return !dense_.empty() || !factors_.empty();
  }
  /// True for a row gradient without rows. Paddle's optimizers then do nothing.
  bool empty() const noexcept { return !is_dense() && rows_.empty(); }

  /// Releases the memory that `read` took.
  void clear() noexcept;

private:
  static constexpr std::size_t rows_ahead = 16;
  // The least cost of a row, in elements: the memory's latency.
  static constexpr std::int64_t row_cost = 32;
  static constexpr std::int64_t piece_elements = 2048;

  /// The factors of one device's contribution X^T Out@GRAD.
  struct device_factors {
    tensor x;
    tensor dout;
    std::int64_t samples = 0;
  };

  struct merged_row {
    std::int64_t row = 0;
    const float* values = nullptr;
  };

  template <class Update>
  void for_each_range(const kernel_context& ctx, Update update) {
    if (!factors_.empty())
      return for_each_product(ctx, update);
    in_ranges(ctx, size_, [&](std::int64_t first, std::int64_t count) {
      for_each_piece(first, count, update);
    });
  }

  // A piece stays in the cache of the worker that computes and uses it.
  template <class Update>
  void for_each_product(const kernel_context& ctx, Update& update) {
    const auto term = [this](std::size_t i) {
      const device_factors& f = factors_[i];
      return product_term<float>{f.x.data<float>(), f.dout.data<float>(),
                                 f.samples};
    };
    sum_.run_sum_in_pieces<float>(
      ctx, height_, width_, factors_.size(), term,
      [this](std::int64_t, std::int64_t rows) {
        return worker_memory(rows * width_);
      },
      [&](std::int64_t first, std::int64_t rows, const float* piece) {
        update(first * width_, piece, rows * width_);
      });
  }

  // A sum is computed in pieces that stay in the cache.
  template <class Update>
  void for_each_piece(std::int64_t first, std::int64_t count,
                      Update& update) const {
    if (dense_.size() == 1)
      return update(first, dense_[0].data<float>() + first, count);
    alignas(64) std::array<float, piece_elements> sum;
    for (auto at = first; at < first + count; at += piece_elements) {
      const auto n = std::min(piece_elements, first + count - at);
      add_up_dense(at, n, sum.data());
      update(at, sum.data(), n);
    }
  }

  template <class Update, class UpdateMissing>
  void for_each_row(std::int64_t first, std::int64_t count, Update& update,
                    UpdateMissing& update_missing) const {
    auto next = std::ranges::lower_bound(rows_, first, {}, &merged_row::row);
    for (auto row = first; row < first + count; ++row)
      if (next != rows_.end() && next->row == row)
        update(row * width_, (next++)->values, width_);
      else
        update_missing(row * width_, zeros_.data(), width_);
  }

  void read_sum(const kernel_context& ctx, const shape& dims,
                const std::shared_ptr<const layout>& format);
  void read_dense(const kernel_context& ctx, const shape& dims,
                  const std::shared_ptr<const layout>& format,
                  std::size_t index);
  void read_factors(const kernel_context& ctx, const shape& dims);
  static float* worker_memory(std::int64_t elements);
  void add_up_dense(std::int64_t first, std::int64_t count, float* sum) const;
  void check(const selected_rows& grad, const shape& dims) const;
  void keep(const selected_rows& grad);
  void merge(const kernel_context& ctx, const selected_rows& grad);
  void add_up(const float* values, std::size_t first, std::size_t last,
              float* sum);

  std::vector<tensor> dense_; // one per argument that is not empty
  std::vector<device_factors> factors_;
  parallel_product sum_; // adds up the factors' products
  tensor sums_;          // values of rows that occur more than once
  std::vector<std::int64_t> order_;
  std::vector<merged_row> rows_;
  std::vector<float> zeros_;
  // The parameter as a matrix; not used if `dense_` holds the gradient.
  std::int64_t height_ = 0;
  std::int64_t width_ = 0;
  std::int64_t size_ = 0;
};

} // namespace troupe::cpu
