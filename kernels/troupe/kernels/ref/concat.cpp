// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

namespace troupe::ref {

namespace {

std::size_t axis_of(const kernel_context& ctx, const shape& dims) {
  return resolve_axis(ctx.attributes().get_int("axis", 0), dims.rank());
}

/// Copies between a whole and its part that begins at `start` on `axis`:
/// calls `f(offset in whole, offset in part)`.
template <class Function>
void for_each_pair(const shape& whole, const shape& part, std::size_t axis,
                   std::int64_t start, Function f) {
  const auto w = around(whole, axis), p = around(part, axis);
  for (std::int64_t o = 0; o < p.outer; ++o)
    for (std::int64_t e = 0; e < p.extent; ++e)
      for (std::int64_t i = 0; i < p.inner; ++i)
        f(w.at(o, start + e, i), p.at(o, e, i));
}

std::vector<array> inputs(const kernel_context& ctx, const char* slot) {
  std::vector<array> all;
  for (std::size_t i = 0; i < ctx.num_inputs(slot); ++i)
    all.push_back(input(ctx, slot, i));
  require(!all.empty(), errc::invalid_argument, "concat of nothing");
  return all;
}

shape joined_dims(const std::vector<array>& parts, std::size_t axis) {
  auto whole = parts[0].dims;
  whole[axis] = 0;
  for (const auto& part : parts) {
    require(part.dims.rank() == whole.rank(), errc::shape_mismatch,
            "concat of ranks that differ");
    auto expected = whole;
    expected[axis] = part.dims[axis];
    require_same("part of concat", part.dims, expected);
    whole[axis] += part.dims[axis];
  }
  return whole;
}

/// Extents of the parts of split along the axis.
std::vector<std::int64_t> split_extents(const kernel_context& ctx,
                                        std::int64_t whole) {
  const auto count = static_cast<std::int64_t>(ctx.num_outputs("Out"));
  auto sections = ctx.attributes().get_ints("sections", {});
  if (ctx.attributes().get_int("num", 0) > 0 || sections.empty())
    sections.assign(static_cast<std::size_t>(count), whole / count);
  std::int64_t rest = whole;
  for (auto s : sections)
    rest -= s == -1 ? 0 : s;
  for (auto& s : sections)
    if (s == -1)
      s = std::exchange(rest, 0);
  return sections;
}

} // namespace

void concat(kernel_context& ctx) {
  const auto parts = inputs(ctx, "X");
  const auto axis = axis_of(ctx, parts[0].dims);
  array out(joined_dims(parts, axis));
  std::int64_t start = 0;
  for (const auto& part : parts) {
    for_each_pair(out.dims, part.dims, axis, start,
                  [&](auto w, auto p) { out[w] = part[p]; });
    start += part.dims[axis];
  }
  output(ctx, "Out", out, input_type(ctx, "X"));
}

void concat_grad(kernel_context& ctx) {
  auto parts = inputs(ctx, "X");
  const auto axis = axis_of(ctx, parts[0].dims);
  auto d = input(ctx, "Out@GRAD");
  require_same("Out@GRAD", d.dims, joined_dims(parts, axis));
  require(ctx.num_outputs("X@GRAD") == parts.size(), errc::invalid_argument,
          "concat_grad needs an X@GRAD for each X");
  std::int64_t start = 0;
  for (std::size_t n = 0; n < parts.size(); ++n) {
    auto& part = parts[n];
    for_each_pair(d.dims, part.dims, axis, start,
                  [&](auto w, auto p) { part[p] = d[w]; });
    output(ctx, "X@GRAD", part, input_type(ctx, "X", n), n);
    start += part.dims[axis];
  }
}

void split(kernel_context& ctx) {
  auto x = input(ctx, "X");
  const auto type = input_type(ctx, "X");
  const auto axis = axis_of(ctx, x.dims);
  const auto extents = split_extents(ctx, x.dims[axis]);
  std::int64_t start = 0;
  for (std::size_t n = 0; n < extents.size(); ++n) {
    auto dims = x.dims;
    dims[axis] = extents[n];
    require(extents[n] >= 0 && start + extents[n] <= x.dims[axis],
            errc::shape_mismatch,
            "the parts of split are larger than " + to_string(x.dims));
    array part(dims);
    for_each_pair(x.dims, dims, axis, start,
                  [&](auto w, auto p) { part[p] = x[w]; });
    output(ctx, "Out", part, type, n);
    start += extents[n];
  }
  require(start == x.dims[axis], errc::shape_mismatch,
          "the parts of split are smaller than " + to_string(x.dims));
}

} // namespace troupe::ref
