// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstdint>

namespace troupe::cpu {

/// A contiguous copy of a line whose elements are `v.inner` apart. A line that
/// is contiguous already is not copied.
template <class T>
class line_buffer {
public:
  line_buffer(const kernel_context& ctx, const axis_view& v)
    : view_(v), strided_(v.inner != 1) {
    if (strided_)
      memory_ = tensor::make(ctx.on().memory(), {v.extent}, dtype_of<T>);
  }

  /// The offset of line (o, i).
  std::int64_t first(std::int64_t o, std::int64_t i) const noexcept {
    return o * view_.extent * view_.inner + i;
  }

  /// Line (o, i) of `source`, to be read.
  const T* read(const T* source, std::int64_t o, std::int64_t i) {
    if (!strided_)
      return source + first(o, i);
    T* to = memory_.template data<T>();
    const T* from = source + first(o, i);
    for (std::int64_t e = 0; e < view_.extent; ++e)
      to[e] = from[e * view_.inner];
    return to;
  }

  /// Where to write line (o, i) of `target`; call `wrote` afterwards.
  T* write(T* target, std::int64_t o, std::int64_t i) {
    return strided_ ? memory_.template data<T>() : target + first(o, i);
  }
  void wrote(T* target, std::int64_t o, std::int64_t i) {
    if (!strided_)
      return;
    const T* from = memory_.template data<T>();
    T* to = target + first(o, i);
    for (std::int64_t e = 0; e < view_.extent; ++e)
      to[e * view_.inner] = from[e];
  }

private:
  axis_view view_;
  bool strided_;
  tensor memory_;
};

/// Calls `line(o, i, number)` for each line along the view's axis with o in
/// [first, first + count).
template <class F>
void for_each_line(const axis_view& v, std::int64_t first, std::int64_t count,
                   F line) {
  for (std::int64_t o = first; o < first + count; ++o)
    for (std::int64_t i = 0; i < v.inner; ++i)
      line(o, i, o * v.inner + i);
}

/// The same for all lines.
template <class F>
void for_each_line(const axis_view& v, F line) {
  for_each_line(v, 0, v.outer, line);
}

/// The same for parts of the lines, which workers share. Each part calls the
/// `line` that its own call of `begin()` returned.
template <class F>
void for_each_line_in_parts(const kernel_context& ctx, const axis_view& v,
                            F begin) {
  in_rows(ctx, v.outer, v.extent * v.inner,
          [&](std::int64_t first, std::int64_t count) {
            for_each_line(v, first, count, begin());
          });
}

} // namespace troupe::cpu
