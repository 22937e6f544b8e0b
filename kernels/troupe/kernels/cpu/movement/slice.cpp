// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/slice_box.hpp>
#include <troupe/kernels/cpu/movement/strided_box.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cpu {

namespace {

std::ptrdiff_t bytes_of(std::int64_t elements, dtype type) {
  return elements * static_cast<std::ptrdiff_t>(size_of(type));
}

// As in Paddle, and unlike Python, an end of -1 is the position before the
// first element, and an end before the first element is the first element.
std::int64_t stop_of(std::int64_t end, std::int64_t extent) {
  if (end >= 0)
    return end;
  return end == -1 ? -extent - 1 : std::max<std::int64_t>(end + extent, 0);
}

/// |step|, but at most `most`.
std::int64_t magnitude(std::int64_t step, std::int64_t most) {
  const auto longest = std::max<std::int64_t>(most, 1);
  return std::abs(std::clamp(step, -longest, longest));
}

slice_box box_of(const kernel_context& ctx, const shape& in, bool strided) {
  slice_cuts cuts{
    .axes = ctx.attributes().get_ints("axes", {}),
    .starts = integers_of(ctx, "StartsTensorList", "StartsTensor", "starts"),
    .ends = integers_of(ctx, "EndsTensorList", "EndsTensor", "ends"),
    .steps = {}};
  if (strided)
    cuts.steps =
      integers_of(ctx, "StridesTensorList", "StridesTensor", "strides");
  else
    cuts.steps.assign(cuts.axes.size(), 1);
  return cut_box(in, cuts, stop_of);
}

void cut(kernel_context& ctx, bool strided) {
  const tensor x = ctx.input("Input");
  const slice_box b = box_of(ctx, x.dims(), strided);
  tensor out =
    ctx.output("Out", without_axes(ctx, b.dims, "decrease_axis"), x.type());
  b.copy_to(out, x);
}

void run_gradient(kernel_context& ctx, bool strided) {
  const shape dims = ctx.input("Input").dims();
  const tensor dout = ctx.input("Out@GRAD");
  const slice_box b = box_of(ctx, dims, strided);
  if (dout.numel() != b.dims.numel())
    require_shape("Out@GRAD", dout.dims(),
                  without_axes(ctx, b.dims, "decrease_axis"));
  tensor dx = ctx.output("Input@GRAD", dims, dout.type());
  std::memset(dx.raw(), 0, dx.bytes());
  b.copy_from(dout, dx);
}

} // namespace

slice_box::slice_box(const shape& of) : whole(of), dims(of), steps(of) {
  for (std::size_t i = 0; i < of.rank(); ++i)
    steps[i] = plain_step(of, i);
}

void slice_box::cut(std::size_t axis, std::int64_t start, std::int64_t stop,
                    std::int64_t step) {
  if (step == 0)
    throw error(errc::invalid_argument, "a slice with a stride of 0");
  if (std::exchange(is_cut[axis], true))
    throw error(errc::invalid_argument,
                "axis " + std::to_string(axis) + " occurs twice in the axes");
  const std::int64_t n = whole[axis];
  const std::int64_t low = step > 0 ? 0 : -1;
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + n : at, low, low + n);
  };
  const std::int64_t begin = bound(start);
  const std::int64_t length =
    step > 0 ? bound(stop) - begin : begin - bound(stop);
  dims[axis] = length <= 0 ? 0 : (length - 1) / magnitude(step, n) + 1;
  if (dims[axis] > 0)
    first += begin * steps[axis];
  if (dims[axis] > 1) // else the step is not used and may be huge
    steps[axis] *= step;
}

slice_box cut_box(const shape& dims, const slice_cuts& cuts,
                  backward_end stop) {
  const auto& [axes, starts, ends, steps] = cuts;
  if (axes.size() != starts.size() || axes.size() != ends.size()
      || axes.size() != steps.size())
    throw error(errc::invalid_argument,
                "axes, starts, ends and steps of a slice differ in number");
  slice_box box(dims);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = normal_axis(axes[i], dims.rank(), "Input");
    box.cut(axis, starts[i], steps[i] < 0 ? stop(ends[i], dims[axis]) : ends[i],
            steps[i]);
  }
  return box;
}

void slice_box::copy_to(tensor& part, const tensor& from) const {
  strided_box box;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    box.add_axis(dims[i], plain_step(dims, i), steps[i]);
  box.copy(part.raw(), from.raw() + bytes_of(first, from.type()), from.type());
}

void slice_box::copy_from(const tensor& part, tensor& to) const {
  strided_box box;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    box.add_axis(dims[i], steps[i], plain_step(dims, i));
  box.copy(to.raw() + bytes_of(first, to.type()), part.raw(), to.type());
}

shape without_axes(const kernel_context& ctx, const shape& dims,
                   std::string_view name) {
  std::array<bool, shape::max_rank> drop{};
  for (const auto axis : ctx.attributes().get_ints(name, {})) {
    const std::size_t at = normal_axis(axis, dims.rank(), "Input");
    if (dims[at] != 1)
      throw_shape("the part", dims,
                  "axis " + std::to_string(at) + " cannot be dropped");
    drop[at] = true;
  }
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    if (!drop[i])
      kept.push_back(dims[i]);
  return shape(kept);
}

void run_slice(kernel_context& ctx) {
  cut(ctx, false);
}

void run_slice_grad(kernel_context& ctx) {
  run_gradient(ctx, false);
}

void run_strided_slice(kernel_context& ctx) {
  cut(ctx, true);
}

void run_strided_slice_grad(kernel_context& ctx) {
  run_gradient(ctx, true);
}

} // namespace troupe::cpu
