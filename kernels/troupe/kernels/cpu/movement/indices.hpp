// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::cpu {

/// The indices in an int32 or int64 input, all of which must be in [0, extent).
/// Throws error(out_of_range) that names the variable, or
/// error(dtype_mismatch).
std::vector<std::int64_t> checked_indices(const kernel_context& ctx,
                                          std::string_view slot,
                                          std::int64_t extent);

/// Runs of `size` elements of a tensor. Each index in `Index` [..., k] gives
/// the position of a run along the first k axes.
struct named_runs {
  std::vector<std::int64_t> starts; ///< in elements
  std::int64_t size = 1;
  shape dims; ///< all runs together: [..., extents of the other axes]
};

/// Throws error(shape_mismatch) if an index has more axes than `whole`, and
/// error(out_of_range) as `checked_indices` does.
named_runs find_runs(const kernel_context& ctx, std::string_view slot,
                     const shape& whole);

/// The same, where each index is a position along the first axis only.
named_runs find_rows(const kernel_context& ctx, std::string_view slot,
                     const shape& whole);

/// Copies the runs of `from` to `to`, one after the other.
void gather_runs(const named_runs& runs, tensor& to, const tensor& from);
/// Copies `from` to the runs of `to`; if a run occurs twice, the last copy
/// stays.
void scatter_runs(const named_runs& runs, tensor& to, const tensor& from);
/// Adds `from` to the runs of `to`.
void add_runs(const named_runs& runs, tensor& to, const tensor& from);
/// Sets the runs of `to` to zero.
void clear_runs(const named_runs& runs, tensor& to);

} // namespace troupe::cpu
