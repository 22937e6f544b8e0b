// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cpu {

namespace {

// Copies `outer` runs of `bytes` bytes between memory with different steps.
void copy_runs(std::byte* to, std::size_t to_step, const std::byte* from,
               std::size_t from_step, std::size_t bytes, std::int64_t outer) {
  if (bytes == 0)
    return;
  for (std::int64_t i = 0; i < outer; ++i)
    std::memcpy(to + static_cast<std::size_t>(i) * to_step,
                from + static_cast<std::size_t>(i) * from_step, bytes);
}

// One part of a whole along an axis, as runs of bytes.
struct part_runs {
  std::int64_t outer = 1;
  std::size_t whole_step = 0; // bytes
  std::size_t part_step = 0;
  std::size_t offset = 0; // of the part's first run in the whole

  part_runs(const shape& whole, const shape& part, std::size_t axis,
            std::int64_t start, dtype type)
    : outer(whole.numel(0, axis)) {
    const auto inner =
      static_cast<std::size_t>(whole.numel(axis + 1, whole.rank()))
      * size_of(type);
    whole_step = static_cast<std::size_t>(whole[axis]) * inner;
    part_step = static_cast<std::size_t>(part[axis]) * inner;
    offset = static_cast<std::size_t>(start) * inner;
  }

  void to_whole(tensor& whole, const tensor& part) const {
    copy_runs(whole.raw() + offset, whole_step, part.raw(), part_step,
              part_step, outer);
  }
  void to_part(const tensor& whole, tensor& part) const {
    copy_runs(part.raw(), part_step, whole.raw() + offset, whole_step,
              part_step, outer);
  }
};

std::size_t axis_of(const kernel_context& ctx, const shape& dims) {
  return normal_axis(ctx.attributes().get_int("axis", 0), dims.rank(), "X");
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

// Extents of the parts along the axis: equal, or as attribute sections says,
// where one -1 takes the rest.
std::vector<std::int64_t> split_extents(const kernel_context& ctx,
                                        std::int64_t whole) {
  const std::size_t count = ctx.num_outputs("Out");
  auto sections = ctx.attributes().get_ints("sections", {});
  if (ctx.attributes().get_int("num", 0) > 0 || sections.empty())
    sections.assign(count,
                    count == 0 ? 0 : whole / static_cast<std::int64_t>(count));
  std::int64_t rest = whole;
  for (const std::int64_t section : sections)
    rest -= section == -1 ? 0 : section;
  for (auto& section : sections)
    if (section == -1)
      section = std::exchange(rest, 0);
  if (rest != 0 || sections.size() != count)
    throw_shape("X", ctx.input("X").dims(),
                "cannot be split into the " + std::to_string(count)
                  + " parts that the attributes ask for");
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
    part_runs(whole, part.dims(), axis, start, part.type()).to_whole(out, part);
    start += part.dims()[axis];
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
    tensor part = ctx.output("X@GRAD", parts[i].dims(), dout.type(), i);
    part_runs(dout.dims(), part.dims(), axis, start, dout.type())
      .to_part(dout, part);
    start += part.dims()[axis];
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
    part_runs(x.dims(), dims, axis, start, x.type()).to_part(x, part);
    start += extents[i];
  }
}

} // namespace troupe::cpu
