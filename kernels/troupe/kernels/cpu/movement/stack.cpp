// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/part_runs.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// `count` tensors of `part` along a new axis.
struct pile {
  shape part;
  shape whole;
  std::size_t axis = 0;
};

std::size_t axis_of(const kernel_context& ctx, std::size_t rank,
                    std::string_view slot) {
  return normal_axis(ctx.attributes().get_int("axis", 0), rank, slot);
}

pile pile_of(const shape& whole, std::size_t axis) {
  std::vector<std::int64_t> part(whole.begin(), whole.end());
  part.erase(part.begin() + static_cast<std::ptrdiff_t>(axis));
  return {shape(part), whole, axis};
}

pile pile_up(const kernel_context& ctx, const shape& part, std::size_t count) {
  const std::size_t axis = axis_of(ctx, part.rank() + 1, "X");
  std::vector<std::int64_t> whole(part.begin(), part.end());
  whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(axis),
               static_cast<std::int64_t>(count));
  return {part, shape(whole), axis};
}

// Joins the tensors of `slot` to `whole`.
void join(kernel_context& ctx, std::string_view slot, std::string_view whole) {
  const tensor first = ctx.input(slot);
  const std::size_t count = ctx.num_inputs(slot);
  const pile p = pile_up(ctx, first.dims(), count);
  tensor out = ctx.output(whole, p.whole, first.type());
  for (std::size_t i = 0; i < count; ++i) {
    const tensor part = ctx.input(slot, i);
    if (part.type() != first.type())
      throw error(errc::dtype_mismatch,
                  "inputs " + std::string(slot) + " differ in dtype");
    require_shape(slot, part.dims(), p.part);
    part_runs(p.whole, p.axis, static_cast<std::int64_t>(i), 1, part.type())
      .to_whole(ctx, out, part);
  }
}

// Splits `whole` into those tensors of `slot` that the op has.
void part(kernel_context& ctx, std::string_view whole, std::string_view slot) {
  const tensor from = ctx.input(whole);
  const pile p = pile_of(from.dims(), axis_of(ctx, from.dims().rank(), whole));
  const std::size_t count = ctx.num_outputs(slot);
  if (static_cast<std::int64_t>(count) != p.whole[p.axis])
    throw_shape(whole, p.whole,
                "cannot be taken apart into " + std::to_string(count)
                  + " tensors along axis " + std::to_string(p.axis));
  for (std::size_t i = 0; i < count; ++i) {
    if (!ctx.has_output(slot, i))
      continue;
    tensor to = ctx.output(slot, p.part, from.type(), i);
    part_runs(p.whole, p.axis, static_cast<std::int64_t>(i), 1, from.type())
      .to_part(ctx, from, to);
  }
}

} // namespace

void run_stack(kernel_context& ctx) {
  join(ctx, "X", "Y");
}

void run_stack_grad(kernel_context& ctx) {
  part(ctx, "Y@GRAD", "X@GRAD");
}

void run_unstack(kernel_context& ctx) {
  part(ctx, "X", "Y");
}

void run_unbind(kernel_context& ctx) {
  part(ctx, "X", "Out");
}

void run_unstack_grad(kernel_context& ctx) {
  join(ctx, "Y@GRAD", "X@GRAD");
}

} // namespace troupe::cpu
