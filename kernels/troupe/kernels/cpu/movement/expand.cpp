// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/strided_box.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

using extents = std::vector<std::int64_t>;

// X, with ones added before its extents, repeated along each axis.
struct repetition {
  shape x;
  extents times;

  shape out() const {
    shape dims = x;
    for (std::size_t i = 0; i < times.size(); ++i)
      if (__builtin_mul_overflow(dims[i], times[i], &dims[i]))
        throw_shape(
          "X", x, "cannot be repeated " + std::to_string(times[i]) + " times");
    return dims;
  }
};

shape with_rank(const shape& x, std::size_t rank) {
  extents dims(rank - x.rank(), 1);
  dims.insert(dims.end(), x.begin(), x.end());
  return shape(dims);
}

// The expansion to `wanted`, where -1 keeps X's extent.
repetition expansion(const shape& x, const extents& wanted) {
  if (wanted.size() < x.rank())
    throw_shape("X", x,
                "cannot be expanded to rank " + std::to_string(wanted.size()));
  repetition r{with_rank(x, wanted.size()), extents(wanted.size(), 1)};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool own =
      wanted[i] == r.x[i] || (wanted[i] == -1 && i + x.rank() >= wanted.size());
    if (!own && (r.x[i] != 1 || wanted[i] < 0))
      throw_shapes("X", x, "the wanted shape", shape(wanted),
                   "cannot be expanded");
    r.times[i] = own ? 1 : wanted[i];
  }
  return r;
}

repetition expand_of(const kernel_context& ctx, const shape& x) {
  return expansion(x,
                   integers_of(ctx, "expand_shapes_tensor", "Shape", "shape"));
}

repetition expand_as_of(const kernel_context& ctx, const shape& x) {
  auto wanted = ctx.attributes().get_ints("target_shape", {});
  if (ctx.has_input("Y")) {
    const shape y = ctx.input("Y").dims();
    wanted.assign(y.begin(), y.end());
  }
  return expansion(x, wanted);
}

repetition tile_of(const kernel_context& ctx, const shape& x) {
  auto times =
    integers_of(ctx, "repeat_times_tensor", "RepeatTimes", "repeat_times");
  for (const auto n : times)
    if (n < 0)
      throw error(errc::invalid_argument,
                  "tile repeats X " + std::to_string(n) + " times");
  const std::size_t rank = std::max(x.rank(), times.size());
  times.insert(times.begin(), rank - times.size(), 1);
  return {with_rank(x, rank), times};
}

// The loops over all repetitions; the larger tensor is visited in order.
strided_box box_of(const repetition& r, bool x_is_target) {
  const shape out = r.out();
  strided_box box;
  for (std::size_t i = 0; i < r.times.size(); ++i) {
    const std::int64_t out_step = plain_step(out, i);
    const std::int64_t x_step = plain_step(r.x, i);
    const auto add = [&](std::int64_t extent, std::int64_t of_out,
                         std::int64_t of_x) {
      box.add_axis(extent, x_is_target ? of_x : of_out,
                   x_is_target ? of_out : of_x);
    };
    add(r.times[i], out_step * r.x[i], 0);
    add(r.x[i], out_step, x_step);
  }
  return box;
}

using repetition_of = repetition (*)(const kernel_context&, const shape&);

void repeat(kernel_context& ctx, repetition_of how) {
  const tensor x = ctx.input("X");
  const repetition r = how(ctx, x.dims());
  tensor out = ctx.output("Out", r.out(), x.type());
  if (out.numel() == 0)
    return; // else the numbers of repetitions may be huge
  box_of(r, false).copy(out.raw(), x.raw(), x.type());
}

// Each element of X gets the sum of its copies' gradients.
void add_up(kernel_context& ctx, const repetition& r, const tensor& dout) {
  const shape x = ctx.input("X").dims();
  require_shape("Out@GRAD", dout.dims(), r.out());
  tensor dx = ctx.output("X@GRAD", x, dout.type());
  std::memset(dx.raw(), 0, dx.bytes());
  if (dout.numel() == 0)
    return;
  box_of(r, true).add(dx.raw(), dout.raw(), dout.type());
}

} // namespace

void run_expand(kernel_context& ctx) {
  repeat(ctx, expand_of);
}

void run_expand_grad(kernel_context& ctx) {
  const tensor dout = ctx.input("Out@GRAD");
  const shape& out = dout.dims();
  add_up(ctx, expansion(ctx.input("X").dims(), {out.begin(), out.end()}), dout);
}

void run_expand_as(kernel_context& ctx) {
  repeat(ctx, expand_as_of);
}

void run_tile(kernel_context& ctx) {
  repeat(ctx, tile_of);
}

void run_tile_grad(kernel_context& ctx) {
  add_up(ctx, tile_of(ctx, ctx.input("X").dims()), ctx.input("Out@GRAD"));
}

} // namespace troupe::cpu
