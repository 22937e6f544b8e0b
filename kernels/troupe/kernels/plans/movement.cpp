// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/plans/movement.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {

namespace {

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

} // namespace

std::vector<std::size_t> transposed_axes(const attribute_map& attributes,
                                         std::size_t rank) {
  std::vector<std::size_t> axes;
  std::vector<bool> seen(rank, false);
  for (const std::int64_t axis : attributes.get_ints("axis", {})) {
    axes.push_back(normal_axis(axis, rank, "X"));
    seen[axes.back()] = true;
  }
  if (axes.size() != rank || std::count(seen.begin(), seen.end(), false) > 0)
    throw error(errc::invalid_argument,
                "attribute axis of transpose2 must name each of "
                  + std::to_string(rank) + " axes once");
  return axes;
}

std::vector<std::size_t> inverse_axes(const std::vector<std::size_t>& axes) {
  std::vector<std::size_t> result(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    result[axes[i]] = i;
  return result;
}

shape permuted(const shape& x, const std::vector<std::size_t>& order) {
  shape out = x;
  for (std::size_t i = 0; i < order.size(); ++i)
    out[i] = x[order[i]];
  return out;
}

std::size_t joined_axis(const kernel_context& ctx, const shape& dims) {
  return normal_axis(integer_of(ctx, "AxisTensor", "axis", 0), dims.rank(),
                     "X");
}

std::vector<tensor> joined_parts(const kernel_context& ctx) {
  std::vector<tensor> parts;
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i)
    parts.push_back(ctx.input("X", i));
  if (parts.empty())
    throw error(errc::invalid_argument, "concat has no inputs X");
  return parts;
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

} // namespace troupe
