// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// Calls `use(first, count)` for ranges that cover [0, elements). Workers share
/// the ranges if there are enough elements. Ranges begin at whole cache lines
/// and vectors, so each element gets the same bits as without a cut.
template <class Use>
void in_ranges(const kernel_context& ctx, std::int64_t elements, Use use) {
  constexpr std::int64_t grain = 1024;
  const even_cut cut{
    elements, worthwhile_parts(ctx.workers(), elements, least_elements), grain};
  ctx.in_parts(cut.parts(),
               [&](std::size_t i) { use(cut.first(i), cut.size(i)); });
}

/// The same for rows of `row_elements` elements: `use(first row, rows)`.
template <class Use>
void in_rows(const kernel_context& ctx, std::int64_t rows,
             std::int64_t row_elements, Use use) {
  const even_cut cut{
    rows, worthwhile_parts(ctx.workers(), rows * row_elements, least_elements)};
  ctx.in_parts(cut.parts(),
               [&](std::size_t i) { use(cut.first(i), cut.size(i)); });
}

/// The same for lines along an axis: `use(part of the view, its offset)`.
template <class Use>
void in_line_parts(const kernel_context& ctx, const axis_view& v, Use use) {
  const auto step = v.extent * v.inner;
  in_rows(ctx, v.outer, step, [&](std::int64_t first, std::int64_t count) {
    axis_view part = v;
    part.outer = count;
    use(part, first * step);
  });
}

} // namespace troupe::cpu
