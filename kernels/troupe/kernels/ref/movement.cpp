// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <algorithm>

namespace troupe::ref {

namespace {

/// XShape has a zero and X's extents as its shape, so it takes no memory.
void output_xshape(kernel_context& ctx, const shape& dims, dtype type) {
  if (!ctx.has_output("XShape"))
    return;
  std::vector<std::int64_t> extents{0};
  extents.insert(extents.end(), dims.begin(), dims.end());
  output(ctx, "XShape", array(shape(extents)), type);
}

shape from_xshape(const kernel_context& ctx) {
  const auto dims = ctx.input("XShape").dims();
  require(dims.rank() > 0, errc::shape_mismatch, "XShape has no extents");
  return shape(dims.dims().subspan(1));
}

/// Out has X's elements in the same order.
void reshape_to(kernel_context& ctx, const shape& dims) {
  auto x = input(ctx, "X");
  const auto type = input_type(ctx, "X");
  require(dims.numel() == x.size(), errc::shape_mismatch,
          "cannot reshape " + to_string(x.dims) + " to " + to_string(dims));
  output_xshape(ctx, x.dims, type);
  x.dims = dims;
  output(ctx, "Out", x, type);
}

/// 0 copies X's extent, -1 stands for the rest.
shape wanted_shape(const kernel_context& ctx, const shape& x) {
  auto dims = ctx.attributes().get_ints("shape", {});
  std::int64_t known = 1;
  std::size_t unknown = dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) {
      require(i < x.rank(), errc::out_of_range,
              "reshape2 copies extent " + std::to_string(i) + " of "
                + to_string(x));
      dims[i] = x[i];
    }
    if (dims[i] == -1) {
      require(unknown == dims.size(), errc::invalid_argument,
              "reshape2 with two unknown extents");
      unknown = i;
    } else {
      known *= dims[i];
    }
  }
  if (unknown < dims.size())
    dims[unknown] = known == 0 ? 0 : x.numel() / known;
  return shape(dims);
}

std::vector<std::size_t> permutation(const kernel_context& ctx,
                                     std::size_t rank) {
  std::vector<std::size_t> axes;
  for (auto axis : ctx.attributes().get_ints("axis", {}))
    axes.push_back(resolve_axis(axis, rank));
  auto sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const bool twice =
    std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  require(axes.size() == rank && !twice, errc::invalid_argument,
          "axis of transpose2 must name each of " + std::to_string(rank)
            + " axes once");
  return axes;
}

/// Axis i of Out is axis `axes[i]` of X.
array transpose(const array& x, const std::vector<std::size_t>& axes) {
  auto dims = x.dims;
  for (std::size_t i = 0; i < axes.size(); ++i)
    dims[i] = x.dims[axes[i]];
  array out(dims);
  for (std::int64_t o = 0; o < out.size(); ++o) {
    const auto to = coordinates(o, dims);
    auto from = to;
    for (std::size_t i = 0; i < axes.size(); ++i)
      from[axes[i]] = to[i];
    out[o] = x[offset_of(from, x.dims)];
  }
  return out;
}

std::vector<std::size_t> inverse(const std::vector<std::size_t>& axes) {
  std::vector<std::size_t> result(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    result[axes[i]] = i;
  return result;
}

/// A box inside a tensor. Negative bounds count from the end; all are clamped.
struct box {
  shape in, first, dims;

  box(const kernel_context& ctx, const shape& input_dims)
    : in(input_dims), first(input_dims), dims(input_dims) {
    for (std::size_t i = 0; i < in.rank(); ++i)
      first[i] = 0;
    const auto axes = ctx.attributes().get_ints("axes", {});
    const auto starts = ctx.attributes().get_ints("starts", {});
    const auto ends = ctx.attributes().get_ints("ends", {});
    require(axes.size() == starts.size() && axes.size() == ends.size(),
            errc::invalid_argument,
            "axes, starts and ends of slice differ in number");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto axis = resolve_axis(axes[i], in.rank());
      first[axis] = clamp(starts[i], in[axis]);
      dims[axis] =
        std::max<std::int64_t>(clamp(ends[i], in[axis]) - first[axis], 0);
    }
  }

  static std::int64_t clamp(std::int64_t bound, std::int64_t extent) {
    bound = bound < 0 ? bound + extent : bound;
    return std::clamp<std::int64_t>(bound, 0, extent);
  }

  /// The extents without those that decrease_axis removes.
  shape out_dims(const kernel_context& ctx) const {
    std::array<bool, shape::max_rank> drop{};
    for (auto axis : ctx.attributes().get_ints("decrease_axis", {}))
      drop[resolve_axis(axis, dims.rank())] = true;
    std::vector<std::int64_t> kept;
    for (std::size_t i = 0; i < dims.rank(); ++i)
      if (!drop[i])
        kept.push_back(dims[i]);
    return shape(kept);
  }

  /// The offset in the whole tensor of the box's element `offset`.
  std::int64_t source(std::int64_t offset) const {
    auto where = coordinates(offset, dims);
    for (std::size_t i = 0; i < in.rank(); ++i)
      where[i] += first[i];
    return offset_of(where, in);
  }
};

} // namespace

void reshape2(kernel_context& ctx) {
  reshape_to(ctx, wanted_shape(ctx, ctx.input("X").dims()));
}

void flatten_contiguous_range(kernel_context& ctx) {
  const auto dims = ctx.input("X").dims();
  const auto& a = ctx.attributes();
  const auto start = resolve_axis(a.get_int("start_axis", 1), dims.rank());
  const auto stop = resolve_axis(a.get_int("stop_axis", 1), dims.rank());
  require(start <= stop, errc::invalid_argument,
          "start_axis comes after stop_axis");
  std::vector<std::int64_t> flat(dims.begin(), dims.begin() + start);
  flat.push_back(dims.numel(start, stop + 1));
  flat.insert(flat.end(), dims.begin() + stop + 1, dims.end());
  reshape_to(ctx, shape(flat));
}

void reshape2_grad(kernel_context& ctx) {
  auto d = input(ctx, "Out@GRAD");
  const auto dims = from_xshape(ctx);
  require(dims.numel() == d.size(), errc::shape_mismatch,
          "Out@GRAD has shape " + to_string(d.dims) + ", X had "
            + to_string(dims));
  d.dims = dims;
  output(ctx, "X@GRAD", d, input_type(ctx, "Out@GRAD"));
}

void transpose2(kernel_context& ctx) {
  auto x = input(ctx, "X");
  const auto type = input_type(ctx, "X");
  output_xshape(ctx, x.dims, type);
  output(ctx, "Out", transpose(x, permutation(ctx, x.dims.rank())), type);
}

void transpose2_grad(kernel_context& ctx) {
  auto d = input(ctx, "Out@GRAD");
  output(ctx, "X@GRAD", transpose(d, inverse(permutation(ctx, d.dims.rank()))),
         input_type(ctx, "Out@GRAD"));
}

void slice(kernel_context& ctx) {
  auto x = input(ctx, "Input");
  const box b(ctx, x.dims);
  array out(b.out_dims(ctx));
  for (std::int64_t o = 0; o < out.size(); ++o)
    out[o] = x[b.source(o)];
  output(ctx, "Out", out, input_type(ctx, "Input"));
}

void slice_grad(kernel_context& ctx) {
  auto x = input(ctx, "Input"), d = input(ctx, "Out@GRAD");
  const box b(ctx, x.dims);
  require_same("Out@GRAD", d.dims, b.out_dims(ctx));
  array dx(x.dims);
  for (std::int64_t o = 0; o < d.size(); ++o)
    dx[b.source(o)] = d[o];
  output(ctx, "Input@GRAD", dx, input_type(ctx, "Input"));
}

} // namespace troupe::ref
