// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/rows.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <string_view>

namespace troupe::cuda {

/// Number of entries of a row-sparse value on a CUDA device.
std::int64_t entries_of(const selected_rows& value);

/// A row-sparse value in the device's memory with room for entries like those
/// of `like`.
selected_rows make_rows(arena& memory, std::int64_t entries,
                        std::int64_t height, const shape& like);
/// Queues a copy of entries to where `to` has room for them, from entry `first`
/// on.
void queue_rows(cuda_stream& queue, const selected_rows& from,
                selected_rows& to, std::int64_t first = 0);

/// The entries of a row-sparse value, linked by row. Makes the links on the
/// stream of the kernel; what it points to lives as long as it does.
class linked_rows {
public:
  /// @param left_out a row that counts as none; -1: none
  /// Throws error(shape_mismatch) naming `slot` unless entries are rows of a
  /// tensor of `dims`, and error(dtype_mismatch) unless float32.
  linked_rows(kernel_context& ctx, std::string_view slot,
              const selected_rows& value, const shape& dims,
              std::int64_t left_out = -1);

  const linked_entries& entries() const noexcept { return entries_; }
  present_rows present() const noexcept {
    return {entries_, entries_.count * entries_.width};
  }
  /// Also queues the list of the rows' first entries.
  all_rows all(kernel_context& ctx);

private:
  std::int64_t height_;
  tensor next_, is_first_, first_;
  linked_entries entries_;
};

/// Each row of `value` once; its first entry has the sum of all.
selected_rows merged_rows(kernel_context& ctx, std::string_view slot,
                          const selected_rows& value);

// Ops whose input X is row-sparse.

void assign_rows(kernel_context& ctx);
/// Throws error(unsupported_op) for a bias.
void scale_rows(kernel_context& ctx, float factor, float bias);
/// Out = X * Y, where Y is one number.
void multiply_rows(kernel_context& ctx);
/// The rows of all arguments of X, each once.
void sum_of_rows(kernel_context& ctx);
/// Adds rows to a tensor.
void add_rows(kernel_context& ctx, const selected_rows& x, tensor& to);

} // namespace troupe::cuda
