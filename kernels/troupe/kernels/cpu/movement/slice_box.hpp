// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::cpu {

/// A regular part of a tensor: element (i, j, ...) is the tensor's element
/// (first[0] + i * step[0], first[1] + j * step[1], ...).
struct slice_box {
  shape whole;
  std::int64_t first = 0; ///< offset of the first element
  shape dims;             ///< extents of the part
  shape steps;            ///< in elements of the whole, may be negative
  std::array<bool, shape::max_rank> is_cut{}; ///< by axis

  explicit slice_box(const shape& of);

  /// Cuts an axis with Python's rule for start:stop:step. Throws
  /// error(invalid_argument) for a step of 0 or an axis that was cut before.
  void cut(std::size_t axis, std::int64_t start, std::int64_t stop,
           std::int64_t step);

  /// The part's elements one after the other.
  void copy_to(tensor& part, const tensor& from) const;
  /// Puts the part's elements in their places.
  void copy_from(const tensor& part, tensor& to) const;
};

/// Cuts as an op states them: one number of each kind per axis that is cut.
struct slice_cuts {
  std::vector<std::int64_t> axes, starts, ends, steps;
};

/// The stop that `end` means where a cut goes backwards; the ops differ.
using backward_end = std::int64_t (*)(std::int64_t end, std::int64_t extent);

/// Cuts a tensor of `dims`. Throws error(invalid_argument) if the numbers of
/// axes, starts, ends and steps differ, or an axis is not there or
/// occurs twice.
slice_box cut_box(const shape& dims, const slice_cuts& cuts, backward_end stop);

/// `dims` without the axes that attribute `name` lists; each must be of extent
/// 1. Throws error(shape_mismatch).
shape without_axes(const kernel_context& ctx, const shape& dims,
                   std::string_view name);

} // namespace troupe::cpu
