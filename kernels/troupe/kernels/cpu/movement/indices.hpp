// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::cpu {

/// The indices in an int32 or int64 input, all checked to be in [0, extent).
/// Throws error(out_of_range) naming the variable, error(dtype_mismatch).
std::vector<std::int64_t> checked_indices(const kernel_context& ctx,
                                          std::string_view slot,
                                          std::int64_t extent);

/// Runs of `size` elements of a tensor that `Index` [..., k] names by their
/// first k axes.
struct named_runs {
  std::vector<std::int64_t> starts; ///< in elements
  std::int64_t size = 1;
  shape dims; ///< of all runs together: [..., extents of the other axes]
};

/// Throws error(shape_mismatch) if Index names more axes than `whole` has,
/// error(out_of_range) as `checked_indices` does.
named_runs find_runs(const kernel_context& ctx, std::string_view slot,
                     const shape& whole);

/// The same where each index names a run along the first axis alone.
named_runs find_rows(const kernel_context& ctx, std::string_view slot,
                     const shape& whole);

/// to = the runs of `from`, one after the other.
void gather_runs(const named_runs& runs, tensor& to, const tensor& from);
/// The runs of `to` become those of `from`; of equal ones the last stays.
void scatter_runs(const named_runs& runs, tensor& to, const tensor& from);
/// The runs of `from` are added to those of `to`.
void add_runs(const named_runs& runs, tensor& to, const tensor& from);
/// The runs of `to` become zero.
void clear_runs(const named_runs& runs, tensor& to);

} // namespace troupe::cpu
