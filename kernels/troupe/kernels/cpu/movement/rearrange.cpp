// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/slice_box.hpp>
#include <troupe/kernels/cpu/movement/strided_box.hpp>

#include <troupe/base/error.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// The two parts of a rolled axis.
struct rolled_axis {
  std::int64_t extent = 1;
  std::int64_t shift = 0; // in [0, extent)
};

// Copies X part by part: each rolled axis is split into two.
class roller {
public:
  roller(const shape& dims, const std::vector<rolled_axis>& axes)
    : dims_(dims), axes_(axes) {}

  void run(tensor& out, const tensor& x) const {
    part(0, 0, 0, strided_box(), out, x);
  }

private:
  void part(std::size_t axis, std::int64_t to, std::int64_t from,
            const strided_box& outer, tensor& out, const tensor& x) const {
    if (axis == axes_.size()) {
      const auto width = static_cast<std::ptrdiff_t>(size_of(x.type()));
      return outer.copy(out.raw() + to * width, x.raw() + from * width,
                        x.type());
    }
    const std::int64_t step = plain_step(dims_, axis);
    const auto& a = axes_[axis];
    const auto next = [&](std::int64_t first, std::int64_t target,
                          std::int64_t count) {
      strided_box box = outer;
      box.add_axis(count, step, step);
      part(axis + 1, to + target * step, from + first * step, box, out, x);
    };
    next(0, a.shift, a.extent - a.shift);
    if (a.shift > 0)
      next(a.extent - a.shift, 0, a.shift);
  }

  const shape& dims_;
  const std::vector<rolled_axis>& axes_;
};

std::int64_t positive_shift(std::int64_t shift, std::int64_t extent) {
  return extent == 0 ? 0 : (shift % extent + extent) % extent;
}

// Without axes, the whole tensor is rolled as one axis.
void roll(kernel_context& ctx, std::string_view from, std::string_view to,
          std::int64_t sign) {
  const tensor x = ctx.input(from);
  const auto axes = ctx.attributes().get_ints("axis", {});
  const auto shifts = integers_of(ctx, "", "ShiftsTensor", "shifts");
  if (shifts.size() != std::max<std::size_t>(axes.size(), 1))
    throw error(errc::invalid_argument,
                "roll has " + std::to_string(axes.size()) + " axes and "
                  + std::to_string(shifts.size()) + " shifts");
  const shape dims = axes.empty() ? shape{x.numel()} : x.dims();
  std::vector<rolled_axis> rolled;
  for (const auto extent : dims)
    rolled.push_back({extent, 0});
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    auto& a =
      rolled[axes.empty() ? 0 : normal_axis(axes[i], dims.rank(), from)];
    a.shift = positive_shift(
      a.shift + sign * positive_shift(shifts[i], a.extent), a.extent);
  }
  tensor out = ctx.output(to, x.dims(), x.type());
  roller(dims, rolled).run(out, x);
}

// The tensors of meshgrid: input number i varies along axis i of every output.
std::vector<std::int64_t> mesh_extents(const kernel_context& ctx) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i) {
    const shape x = ctx.input("X", i).dims();
    if (x.rank() > 1)
      throw_shape("X", x, "expected a vector");
    dims.push_back(x.numel());
  }
  return dims;
}

} // namespace

void run_flip(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  slice_box mirrored(x.dims());
  for (const auto axis : ctx.attributes().get_ints("axis", {})) {
    const std::size_t at = normal_axis(axis, x.dims().rank(), "X");
    mirrored.cut(at, -1, -x.dims()[at] - 1, -1);
  }
  tensor out = ctx.output("Out", x.dims(), x.type());
  mirrored.copy_to(out, x);
}

void run_roll(kernel_context& ctx) {
  roll(ctx, "X", "Out", 1);
}

void run_roll_grad(kernel_context& ctx) {
  roll(ctx, "Out@GRAD", "X@GRAD", -1);
}

void run_meshgrid(kernel_context& ctx) {
  const shape dims(mesh_extents(ctx));
  for (std::size_t i = 0; i < dims.rank(); ++i) {
    if (!ctx.has_output("Out", i))
      continue;
    const tensor x = ctx.input("X", i);
    tensor out = ctx.output("Out", dims, x.type(), i);
    strided_box box;
    for (std::size_t axis = 0; axis < dims.rank(); ++axis)
      box.add_axis(dims[axis], plain_step(dims, axis), axis == i ? 1 : 0);
    box.copy(out.raw(), x.raw(), x.type());
  }
}

void run_meshgrid_grad(kernel_context& ctx) {
  const shape dims(mesh_extents(ctx));
  for (std::size_t i = 0; i < dims.rank(); ++i) {
    if (!ctx.has_output("X@GRAD", i))
      continue;
    const tensor dout = ctx.input("outputs@GRAD", i);
    require_shape("outputs@GRAD", dout.dims(), dims);
    tensor dx = ctx.output("X@GRAD", ctx.input("X", i).dims(), dout.type(), i);
    std::memset(dx.raw(), 0, dx.bytes());
    strided_box box;
    for (std::size_t axis = 0; axis < dims.rank(); ++axis)
      box.add_axis(dims[axis], axis == i ? 1 : 0, plain_step(dims, axis));
    box.add(dx.raw(), dout.raw(), dout.type());
  }
}

} // namespace troupe::cpu
