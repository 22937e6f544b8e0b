// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/views/reshape.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe {

namespace {

using extents = std::vector<std::int64_t>;

// The memory of `value` with another shape; nothing is copied.
void write_reshaped(kernel_context& ctx, std::string_view slot,
                    const tensor& value, const shape& dims) {
  ctx.output_variable(slot).set(value.reshaped(dims).share());
}

void write_reshaped(kernel_context& ctx, const tensor& x, const extents& dims) {
  const shape out(dims);
  write_xshape(ctx, x.dims(), x.type());
  write_reshaped(ctx, "Out", x, out);
}

// Extent `axis` of a reshape2: 0 copies X's.
std::int64_t known_extent(std::int64_t wanted, std::size_t axis,
                          const shape& x) {
  if (wanted != 0)
    return wanted;
  if (axis >= x.rank())
    throw_shape("X", x,
                "has no extent for the 0 at position " + std::to_string(axis)
                  + " of attribute shape");
  return x[axis];
}

// The extent that -1 stands for.
std::int64_t missing_extent(const extents& dims, const shape& x) {
  std::int64_t known = 1;
  int unknown = 0;
  for (const std::int64_t extent : dims) {
    unknown += extent == -1 ? 1 : 0;
    if (extent != -1 && __builtin_mul_overflow(known, extent, &known))
      throw_shape("X", x, "cannot be reshaped to extents beyond 2^63");
  }
  if (unknown > 1)
    throw error(errc::invalid_argument,
                "the shape of a reshape has two unknown extents");
  return known == 0 ? 0 : x.numel() / known;
}

extents reshape_target(const kernel_context& ctx, const shape& x) {
  auto dims = integers_of(ctx, "ShapeTensor", "Shape", "shape");
  for (std::size_t i = 0; i < dims.size(); ++i)
    dims[i] = known_extent(dims[i], i, x);
  const std::int64_t missing = missing_extent(dims, x);
  for (auto& extent : dims)
    extent = extent == -1 ? missing : extent;
  if (const shape out(dims); out.numel() != x.numel())
    throw_shape("X", x, "cannot be reshaped to " + to_string(out));
  return dims;
}

// Without axes, all extents of 1 are removed. Axes of other extents stay.
extents squeezed(const kernel_context& ctx, const shape& x) {
  const auto axes = ctx.attributes().get_ints("axes", {});
  std::vector<bool> drops(x.rank(), axes.empty());
  for (const std::int64_t axis : axes)
    drops[normal_axis(axis, x.rank(), "X")] = true;
  extents dims;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!drops[i] || x[i] != 1)
      dims.push_back(x[i]);
  return dims;
}

// Axes are inserted one after the other; each counts those inserted before.
extents unsqueezed(const kernel_context& ctx, const shape& x) {
  extents dims(x.begin(), x.end());
  for (const auto axis :
       integers_of(ctx, "AxesTensorList", "AxesTensor", "axes")) {
    const std::size_t at = normal_axis(axis, dims.size() + 1, "Out");
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), 1);
  }
  return dims;
}

// X's shape in a gradient op: from X itself, or from XShape without its leading
// zero.
shape saved_shape(const kernel_context& ctx) {
  if (!ctx.has_input("XShape"))
    return ctx.input("X").dims();
  const shape saved = ctx.input("XShape").dims();
  if (saved.rank() == 0)
    throw_shape("XShape", saved, "expected [0, extents of X...]");
  return shape(saved.dims().subspan(1));
}

} // namespace

void run_reshape(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  write_reshaped(ctx, x, reshape_target(ctx, x.dims()));
}

void run_squeeze(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  write_reshaped(ctx, x, squeezed(ctx, x.dims()));
}

void run_unsqueeze(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  write_reshaped(ctx, x, unsqueezed(ctx, x.dims()));
}

void run_flatten_matrix(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const shape& dims = x.dims();
  const std::int64_t axis = ctx.attributes().get_int("axis", 1);
  const auto rank = static_cast<std::int64_t>(dims.rank());
  if (axis < -rank || axis > rank)
    throw_shape("X", dims, "cannot be split at axis " + std::to_string(axis));
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  write_reshaped(ctx, x, {dims.numel(0, at), dims.numel(at, dims.rank())});
}

void run_flatten(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const shape& dims = x.dims();
  if (dims.rank() == 0)
    return write_reshaped(ctx, x, {1});
  const auto& attributes = ctx.attributes();
  const std::size_t start =
    normal_axis(attributes.get_int("start_axis", 1), dims.rank(), "X");
  const std::size_t stop =
    normal_axis(attributes.get_int("stop_axis", 1), dims.rank(), "X");
  if (start > stop)
    throw error(errc::invalid_argument,
                "start_axis of flatten comes after stop_axis");
  extents flat(dims.begin(), dims.begin() + start);
  flat.push_back(dims.numel(start, stop + 1));
  flat.insert(flat.end(), dims.begin() + stop + 1, dims.end());
  write_reshaped(ctx, x, flat);
}

void run_reshape_grad(kernel_context& ctx) {
  const shape dims = saved_shape(ctx);
  const tensor dout = ctx.input("Out@GRAD");
  if (dims.numel() != dout.numel())
    throw_shape("Out@GRAD", dout.dims(), "X had " + to_string(dims));
  write_reshaped(ctx, "X@GRAD", dout, dims);
}

} // namespace troupe
