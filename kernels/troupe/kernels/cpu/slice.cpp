// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace troupe::cpu {

namespace {

// The part of Input that Out is.
struct box {
  shape first;
  shape dims;
};

// Negative bounds count from the end, all are clamped.
std::int64_t clamp_bound(std::int64_t bound, std::int64_t extent) {
  bound = bound < 0 ? bound + extent : bound;
  return std::clamp<std::int64_t>(bound, 0, extent);
}

box box_of(const kernel_context& ctx, const shape& in) {
  const auto& attributes = ctx.attributes();
  const auto axes = attributes.get_ints("axes", {});
  const auto starts = attributes.get_ints("starts", {});
  const auto ends = attributes.get_ints("ends", {});
  if (axes.size() != starts.size() || axes.size() != ends.size())
    throw error(errc::invalid_argument,
                "attributes axes, starts and ends of slice differ in number");
  box b{in, in};
  for (std::size_t i = 0; i < in.rank(); ++i)
    b.first[i] = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = normal_axis(axes[i], in.rank(), "Input");
    b.first[axis] = clamp_bound(starts[i], in[axis]);
    b.dims[axis] =
      std::max<std::int64_t>(clamp_bound(ends[i], in[axis]) - b.first[axis], 0);
  }
  return b;
}

// The box's extents without those that decrease_axis drops.
shape output_shape(const kernel_context& ctx, const shape& dims) {
  std::array<bool, shape::max_rank> drop{};
  for (const auto axis : ctx.attributes().get_ints("decrease_axis", {}))
    drop[normal_axis(axis, dims.rank(), "Input")] = true;
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    if (!drop[i])
      kept.push_back(dims[i]);
  return shape(kept);
}

// Calls `run(whole_offset, box_offset, count)` for each contiguous run, in
// elements.
template <class Run>
void for_each_run(const shape& whole, const box& b, Run run) {
  const std::int64_t size = b.dims.numel();
  if (size == 0)
    return;
  std::size_t axis = whole.rank(); // all axes from here on are whole
  while (axis > 0 && b.dims[axis - 1] == whole[axis - 1])
    --axis;
  const std::size_t outer = axis == 0 ? 0 : axis - 1;
  const std::int64_t count = b.dims.numel(outer, whole.rank());
  for (std::int64_t at = 0; at < size; at += count) {
    std::int64_t rest = at / count;
    std::int64_t offset = 0;
    for (std::size_t i = outer; i-- > 0;) {
      offset +=
        (b.first[i] + rest % b.dims[i]) * whole.numel(i + 1, whole.rank());
      rest /= b.dims[i];
    }
    if (axis > 0)
      offset += b.first[outer] * whole.numel(axis, whole.rank());
    run(offset, at, count);
  }
}

} // namespace

void run_slice(kernel_context& ctx) {
  const tensor x = ctx.input("Input");
  const box b = box_of(ctx, x.dims());
  tensor out = ctx.output("Out", output_shape(ctx, b.dims), x.type());
  if (out.numel() != b.dims.numel())
    throw_shape("Input", x.dims(), "decrease_axis drops more than one element");
  const std::size_t width = size_of(x.type());
  for_each_run(x.dims(), b, [&](auto from, auto to, auto count) {
    std::memcpy(out.raw() + static_cast<std::size_t>(to) * width,
                x.raw() + static_cast<std::size_t>(from) * width,
                static_cast<std::size_t>(count) * width);
  });
}

void run_slice_grad(kernel_context& ctx) {
  const shape dims = ctx.input("Input").dims();
  const tensor dout = ctx.input("Out@GRAD");
  const box b = box_of(ctx, dims);
  if (dout.numel() != b.dims.numel())
    require_shape("Out@GRAD", dout.dims(), output_shape(ctx, b.dims));
  tensor dx = ctx.output("Input@GRAD", dims, dout.type());
  std::memset(dx.raw(), 0, dx.bytes());
  const std::size_t width = size_of(dout.type());
  for_each_run(dims, b, [&](auto to, auto from, auto count) {
    std::memcpy(dx.raw() + static_cast<std::size_t>(to) * width,
                dout.raw() + static_cast<std::size_t>(from) * width,
                static_cast<std::size_t>(count) * width);
  });
}

} // namespace troupe::cpu
