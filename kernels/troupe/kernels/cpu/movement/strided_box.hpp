// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// A box of elements that two tensors share. Each tensor has its own step along
/// each axis, in elements: a negative step runs backwards, 0 repeats. Nothing
/// is checked: the caller must make sure that steps stay inside the tensors.
class strided_box {
public:
  /// Adds the next inner axis. Adjacent axes are merged if both tensors allow
  /// it.
  void add_axis(std::int64_t extent, std::int64_t to_step,
                std::int64_t from_step);

  /// to[i] = from[i]; the pointers are to the box's first elements.
  void copy(std::byte* to, const std::byte* from, dtype type) const;
  /// to[i] += from[i] for float32, float64, int32 and int64.
  void add(std::byte* to, const std::byte* from, dtype type) const;

private:
  struct axis {
    std::int64_t extent = 1;
    std::int64_t to_step = 0;
    std::int64_t from_step = 0;
  };

  template <class T, class Run>
  void walk(std::size_t depth, T* to, const T* from, Run run) const;

  // A program's shapes have at most 8 axes; tiling splits each in two.
  std::array<axis, 2 * shape::max_rank> axes_{};
  std::size_t rank_ = 0;
  bool empty_ = false;
};

/// The distance of neighbours along `axis` of a plain tensor, in elements.
inline std::int64_t plain_step(const shape& dims, std::size_t axis) {
  return dims.numel(axis + 1, dims.rank());
}

} // namespace troupe::cpu
