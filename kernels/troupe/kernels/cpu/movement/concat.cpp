// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/part_runs.hpp>
#include <troupe/kernels/plans/movement.hpp>

#include <troupe/base/error.hpp>

namespace troupe::cpu {

void run_concat(kernel_context& ctx) {
  const auto parts = joined_parts(ctx);
  const std::size_t axis = joined_axis(ctx, parts[0].dims());
  const shape whole = joined_shape(parts, axis);
  tensor out = ctx.output("Out", whole, parts[0].type());
  std::int64_t start = 0;
  for (const tensor& part : parts) {
    const std::int64_t extent = part.dims()[axis];
    part_runs(whole, axis, start, extent, part.type()).to_whole(ctx, out, part);
    start += extent;
  }
}

void run_concat_grad(kernel_context& ctx) {
  const auto parts = joined_parts(ctx);
  const std::size_t axis = joined_axis(ctx, parts[0].dims());
  const tensor dout = ctx.input("Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), joined_shape(parts, axis));
  if (ctx.num_outputs("X@GRAD") != parts.size())
    throw error(errc::invalid_argument,
                "concat_grad needs one output X@GRAD for each input X");
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t extent = parts[i].dims()[axis];
    if (ctx.has_output("X@GRAD", i)) {
      tensor part = ctx.output("X@GRAD", parts[i].dims(), dout.type(), i);
      part_runs(dout.dims(), axis, start, extent, dout.type())
        .to_part(ctx, dout, part);
    }
    start += extent;
  }
}

void run_split(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const std::size_t axis = joined_axis(ctx, x.dims());
  const auto extents = split_extents(ctx, x.dims()[axis]);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 0 || start + extents[i] > x.dims()[axis])
      throw_shape("X", x.dims(), "attribute sections does not fit");
    shape dims = x.dims();
    dims[axis] = extents[i];
    tensor part = ctx.output("Out", dims, x.type(), i);
    part_runs(x.dims(), axis, start, extents[i], x.type())
      .to_part(ctx, x, part);
    start += extents[i];
  }
}

} // namespace troupe::cpu
