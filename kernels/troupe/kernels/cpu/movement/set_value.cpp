// SPDX-License-Identifier: Apache-2.0
// Ops with values in attributes: a constant, and x[...] = constant.
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/attribute_values.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/slice_box.hpp>
#include <troupe/kernels/cpu/movement/strided_box.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// Ends of -1, and ends before the first element, mean the position before it.
std::int64_t stop_of_part(std::int64_t end, std::int64_t extent) {
  return end == -1 || end < -extent ? -extent - 1 : end;
}

slice_box part_of(const kernel_context& ctx, const shape& dims) {
  slice_cuts cuts{.axes = ctx.attributes().get_ints("axes", {}),
                  .starts = integers_of(ctx, "StartsTensorList", "", "starts"),
                  .ends = integers_of(ctx, "EndsTensorList", "", "ends"),
                  .steps = integers_of(ctx, "StepsTensorList", "", "steps")};
  if (cuts.steps.empty())
    cuts.steps.assign(cuts.axes.size(), 1);
  return cut_box(dims, cuts, stop_of_part);
}

struct axis_of_part {
  std::int64_t extent = 1;
  std::int64_t step = 0; // elements of the whole tensor
};

// The axes along which a value is broadcast. decrease_axes are removed, and
// each of none_axes inserts an axis of extent 1 before the input axis of that
// number.
std::vector<axis_of_part> target_axes(const kernel_context& ctx,
                                      const slice_box& part) {
  const auto dropped = ctx.attributes().get_ints("decrease_axes", {});
  const auto none = ctx.attributes().get_ints("none_axes", {});
  std::vector<axis_of_part> axes;
  auto next = none.begin();
  for (std::size_t i = 0; i < part.dims.rank(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    for (; next != none.end() && *next <= axis; ++next)
      axes.push_back({});
    if (std::ranges::find(dropped, axis) == dropped.end())
      axes.push_back({part.dims[i], part.steps[i]});
    else if (part.dims[i] != 1)
      throw_shape("the part", part.dims, "a dropped axis must be of extent 1");
  }
  axes.resize(axes.size()
              + static_cast<std::size_t>(std::distance(next, none.end())));
  return axes;
}

std::ptrdiff_t first_byte(const slice_box& part, dtype type) {
  return part.first * static_cast<std::ptrdiff_t>(size_of(type));
}

// Pairs the elements of part and value: the value's shape is aligned with the
// part's last extents, and extents of 1 are repeated.
strided_box meeting(const std::vector<axis_of_part>& axes, const shape& value,
                    bool into_value) {
  strided_box box;
  const std::size_t rank = value.rank();
  for (std::size_t i = rank; i-- > axes.size();)
    if (value[rank - 1 - i] != 1)
      throw_shape("ValueTensor", value, "has more axes than what it is set to");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t behind = axes.size() - i; // number of axes from here on
    std::int64_t step = 0;
    if (behind <= rank && value[rank - behind] != 1) {
      if (value[rank - behind] != axes[i].extent)
        throw_shape("ValueTensor", value,
                    "does not repeat over extent "
                      + std::to_string(axes[i].extent));
      step = plain_step(value, rank - behind);
    }
    into_value ? box.add_axis(axes[i].extent, step, axes[i].step)
               : box.add_axis(axes[i].extent, axes[i].step, step);
  }
  return box;
}

tensor value_of(const kernel_context& ctx, dtype type) {
  if (!ctx.has_input("ValueTensor"))
    return attribute_values(ctx, shape(ctx.attributes().get_ints("shape", {})),
                            type);
  const tensor value = ctx.input("ValueTensor");
  require_type("ValueTensor", value.type(), type);
  return value;
}

} // namespace

void run_assign_value(kernel_context& ctx) {
  const shape dims(ctx.attributes().get_ints("shape", {}));
  const dtype type = dtype_attribute(ctx.attributes(), "dtype", dtype::float32);
  ctx.output_variable("Out").set(attribute_values(ctx, dims, type));
}

void run_set_value(kernel_context& ctx) {
  const tensor x = ctx.input("Input");
  tensor value = value_of(ctx, x.type());
  const slice_box part = part_of(ctx, x.dims());
  const auto box = meeting(target_axes(ctx, part), value.dims(), false);
  tensor out = ctx.output("Out", x.dims(), x.type());
  if (out.raw() == value.raw()) // both are one variable
    value = clone(value, ctx.on().memory());
  if (out.raw() != x.raw())
    std::memcpy(out.raw(), x.raw(), x.bytes());
  box.copy(out.raw() + first_byte(part, x.type()), value.raw(), x.type());
}

// Overwritten elements have gradient zero; a value gets that of its elements.
void run_set_value_grad(kernel_context& ctx) {
  const tensor dout = ctx.input("Out@GRAD");
  const slice_box part = part_of(ctx, dout.dims());
  if (ctx.has_output("ValueTensor@GRAD")) {
    const shape dims = ctx.input("ValueTensor").dims();
    const auto box = meeting(target_axes(ctx, part), dims, true);
    tensor dvalue = ctx.output("ValueTensor@GRAD", dims, dout.type());
    std::memset(dvalue.raw(), 0, dvalue.bytes());
    box.add(dvalue.raw(), dout.raw() + first_byte(part, dout.type()),
            dout.type());
  }
  if (!ctx.has_output("Input@GRAD"))
    return;
  tensor dx = ctx.output("Input@GRAD", dout.dims(), dout.type());
  if (dx.raw() != dout.raw())
    std::memcpy(dx.raw(), dout.raw(), dout.bytes());
  constexpr std::byte zero[8] = {};
  const auto box = meeting(target_axes(ctx, part), {}, false);
  box.copy(dx.raw() + first_byte(part, dx.type()), zero, dx.type());
}

} // namespace troupe::cpu
