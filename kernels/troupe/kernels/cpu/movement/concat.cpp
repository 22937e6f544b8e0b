// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/part_runs.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::cpu {

namespace {

std::size_t axis_of(const kernel_context& ctx, const shape& dims) {
  return normal_axis(integer_of(ctx, "AxisTensor", "axis", 0), dims.rank(),
                     "X");
}

std::vector<tensor> parts_of(const kernel_context& ctx) {
  std::vector<tensor> parts;
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i)
    parts.push_back(ctx.input("X", i));
  if (parts.empty())
    throw error(errc::invalid_argument, "concat has no inputs X");
  return parts;
}

void require_fits(const tensor& part, const tensor& first, std::size_t axis) {
  shape expected = first.dims();
  if (part.dims().rank() == expected.rank())
    expected[axis] = part.dims()[axis];
  if (!(part.dims() == expected))
    throw_shapes("X", part.dims(), "X", first.dims(),
                 "cannot be joined along the axis attribute");
  if (part.type() != first.type())
    throw error(errc::dtype_mismatch, "inputs X of concat differ in dtype");
}

shape joined_shape(const std::vector<tensor>& parts, std::size_t axis) {
  shape whole = parts[0].dims();
  whole[axis] = 0;
  for (const tensor& part : parts) {
    require_fits(part, parts[0], axis);
    whole[axis] += part.dims()[axis];
  }
  return whole;
}

// Extents of the parts along the axis: equal, or given by inputs or by
// attribute sections, where one -1 stands for the rest.
std::vector<std::int64_t> split_extents(const kernel_context& ctx,
                                        std::int64_t whole) {
  const std::size_t count = ctx.num_outputs("Out");
  auto sections = integers_of(ctx, "SectionsTensorList", "", "sections");
  if (ctx.attributes().get_int("num", 0) > 0 || sections.empty())
    sections.assign(count,
                    count == 0 ? 0 : whole / static_cast<std::int64_t>(count));
  std::int64_t rest = whole;
  const auto refuse = [&] {
    throw_shape("X", ctx.input("X").dims(),
                "cannot be split into the " + std::to_string(count)
                  + " parts that the attributes ask for");
  };
  for (const std::int64_t section : sections) {
    if (section < -1 || section > rest)
      refuse();
    rest -= section == -1 ? 0 : section;
  }
  for (auto& section : sections)
    if (section == -1)
      section = std::exchange(rest, 0);
  if (rest != 0 || sections.size() != count)
    refuse();
  return sections;
}

} // namespace

void run_concat(kernel_context& ctx) {
  const auto parts = parts_of(ctx);
  const std::size_t axis = axis_of(ctx, parts[0].dims());
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
  const auto parts = parts_of(ctx);
  const std::size_t axis = axis_of(ctx, parts[0].dims());
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
  const std::size_t axis = axis_of(ctx, x.dims());
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
