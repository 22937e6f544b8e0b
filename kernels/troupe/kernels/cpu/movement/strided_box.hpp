// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// A box of elements that two tensors have in common. Along each axis both
/// have a step, in elements: negative ones run backwards, 0 repeats. Steps
/// reach only as far as the caller's tensors: nothing is checked.
class strided_box {
public:
  /// Adds the next inner axis; neighbours that lie alike become one.
  void add_axis(std::int64_t extent, std::int64_t to_step,
                std::int64_t from_step);

  /// to[i] = from[i]; pointers to the box's first elements.
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

  // A program's shapes have 8 axes at most; tiling splits each in two.
  std::array<axis, 2 * shape::max_rank> axes_{};
  std::size_t rank_ = 0;
  bool empty_ = false;
};

/// Elements between neighbours along `axis` of a plain tensor.
inline std::int64_t plain_step(const shape& dims, std::size_t axis) {
  return dims.numel(axis + 1, dims.rank());
}

} // namespace troupe::cpu
