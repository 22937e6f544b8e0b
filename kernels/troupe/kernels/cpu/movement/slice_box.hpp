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

  /// Copies the part's elements to `part`, one after the other.
  void copy_to(tensor& part, const tensor& from) const;
  /// Copies the elements of `part` to their places.
  void copy_from(const tensor& part, tensor& to) const;
};

/// Cuts as an op states them: one number of each kind per axis.
struct slice_cuts {
  std::vector<std::int64_t> axes, starts, ends, steps;
};

/// The position that `end` means if a cut goes backwards; ops differ in this.
using backward_end = std::int64_t (*)(std::int64_t end, std::int64_t extent);

/// Cuts a tensor of `dims`. Throws error(invalid_argument) if there are not
/// equally many axes, starts, ends and steps, or if an axis is out of range or
/// occurs twice.
slice_box cut_box(const shape& dims, const slice_cuts& cuts, backward_end stop);

/// `dims` without the axes that attribute `name` lists. Each must have extent
/// 1; otherwise throws error(shape_mismatch).
shape without_axes(const kernel_context& ctx, const shape& dims,
                   std::string_view name);

} // namespace troupe::cpu
