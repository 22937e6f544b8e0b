// SPDX-License-Identifier: Apache-2.0
// Tensor arrays, and the ops that choose among variables.
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/sequence/tensor_arrays.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cpu {

namespace {

/// The one integer in a slot.
std::int64_t scalar_index(const kernel_context& ctx, std::string_view slot) {
  const tensor value = ctx.input(slot);
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  if (value.type() == dtype::boolean)
    return value.data<bool>()[0] ? 1 : 0;
  return index_values(value, slot)[0];
}

std::size_t entry_index(const kernel_context& ctx) {
  const auto index = scalar_index(ctx, "I");
  // An array is as long as its largest index. A larger index than this is an
  // error in the program.
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (index < 0 || index >= most)
    throw error(errc::out_of_range,
                "index " + std::to_string(index) + " of a tensor array");
  return static_cast<std::size_t>(index);
}

std::size_t chosen(const kernel_context& ctx, std::size_t count) {
  const auto mask = scalar_index(ctx, "Mask");
  if (mask < 0 || mask >= static_cast<std::int64_t>(count))
    throw error(errc::out_of_range, "Mask " + std::to_string(mask) + " among "
                                      + std::to_string(count) + " branches");
  return static_cast<std::size_t>(mask);
}

void write_zeros_like(kernel_context& ctx, const tensor& like) {
  tensor out = ctx.output("Out", like.dims(), like.type());
  if (auto bytes = out.bytes())
    std::memset(out.raw(), 0, bytes);
  ctx.output_variable("Out").as_tensor().set_levels(like.levels());
}

void run_on(const kernel_context& ctx, kernel_function run,
            const op_arguments& inputs, const op_arguments& outputs) {
  kernel_context inner{ctx.on(), ctx.queue(), ctx.attributes(),
                       inputs,   outputs,     ctx.step()};
  run(inner);
}

/// a + b, as the op `sum` adds.
tensor sum_of(const kernel_context& ctx, const tensor& a, const tensor& b) {
  variable first, second, total;
  first.set(a);
  second.set(b);
  const argument_list inputs{{"X", "", &first}, {"X", "", &second}};
  const argument_list outputs{{"Out", "", &total}};
  run_on(ctx, run_sum, inputs, outputs);
  return total.as_tensor();
}

/// The entries of the array in slot X, each in its own variable.
std::vector<variable> entries_of(const kernel_context& ctx) {
  const auto& x = ctx.input_variable("X");
  if (!x.is_array() || x.as_array().empty())
    throw error(errc::kernel_failure, "the tensor array in X has no entries",
                {.variable = std::string(ctx.input_name("X"))});
  std::vector<variable> entries;
  for (const auto& entry : x.as_array()) {
    if (!entry)
      throw error(errc::kernel_failure,
                  "entry " + std::to_string(entries.size())
                    + " of the tensor array in X has no value",
                  {.variable = std::string(ctx.input_name("X"))});
    entries.emplace_back().set(entry);
  }
  return entries;
}

void append(argument_list& to, std::string_view slot,
            std::vector<variable>& values) {
  for (auto& value : values)
    to.add({slot, slot, &value});
}

bool stacks(const kernel_context& ctx) {
  return ctx.attributes().get_bool("use_stack", false);
}

/// Each entry's extent along the axis.
void write_extents(kernel_context& ctx, const std::vector<variable>& entries) {
  if (!ctx.has_output("OutIndex"))
    return;
  tensor out = ctx.output(
    "OutIndex", {static_cast<std::int64_t>(entries.size())}, dtype::int32);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& dims = entries[i].as_tensor().dims();
    const auto axis = ctx.attributes().get_int("axis", 0);
    out.data<std::int32_t>()[i] =
      stacks(ctx)
        ? 1
        : static_cast<std::int32_t>(dims[normal_axis(axis, dims.rank(), "X")]);
  }
}

} // namespace

variable share_value(const variable& from) {
  variable copy = from;
  if (copy.is_tensor()) {
    copy.as_tensor() = copy.as_tensor().share();
  } else if (copy.is_rows()) {
    copy.as_rows().values = copy.as_rows().values.share();
  } else if (copy.is_array()) {
    for (auto& entry : copy.as_array())
      entry = entry.share();
  }
  return copy;
}

void sum_arrays(kernel_context& ctx) {
  tensor_array total = share_value(ctx.input_variable("X")).as_array();
  for (std::size_t k = 1; k < ctx.num_inputs("X"); ++k) {
    const auto& term = ctx.input_variable("X", k).as_array();
    total.resize(std::max(total.size(), term.size()));
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (!term[i])
        continue;
      total[i] = total[i] ? sum_of(ctx, total[i], term[i]) : term[i].share();
    }
  }
  ctx.output_variable("Out").set(std::move(total));
}

void run_write_to_array(kernel_context& ctx) {
  const auto index = entry_index(ctx);
  const tensor x = ctx.input("X");
  auto& out = ctx.output_variable("Out");
  if (!out.is_array())
    out.set(tensor_array{});
  auto& array = out.as_array();
  if (array.size() <= index)
    array.resize(index + 1);
  array[index] = x.share();
}

// The gradient of a write reads an entry of an array of gradients. If that
// entry is missing, nobody used the written value (X_W), and the gradient is
// zero.
void run_read_from_array(kernel_context& ctx) {
  const auto index = entry_index(ctx);
  const auto& x = ctx.input_variable("X");
  const std::size_t size = x.is_array() ? x.as_array().size() : 0;
  if (index < size && x.as_array()[index])
    return ctx.output_variable("Out").set(x.as_array()[index].share());
  if (ctx.has_input("X_W"))
    return write_zeros_like(ctx, ctx.input("X_W"));
  throw error(errc::out_of_range, "entry " + std::to_string(index)
                                    + " of a tensor array of "
                                    + std::to_string(size) + " has no value");
}

void run_lod_array_length(kernel_context& ctx) {
  const auto& x = ctx.input_variable("X");
  tensor out = ctx.output("Out", {1}, dtype::int64);
  out.data<std::int64_t>()[0] =
    x.is_array() ? static_cast<std::int64_t>(x.as_array().size()) : 0;
}

// Joins the entries along the axis (concat), or stacks them.
void run_tensor_array_to_tensor(kernel_context& ctx) {
  auto entries = entries_of(ctx);
  argument_list inputs;
  append(inputs, "X", entries);
  const argument_list outputs{{stacks(ctx) ? "Y" : "Out",
                               ctx.output_name("Out"),
                               &ctx.output_variable("Out")}};
  run_on(ctx, stacks(ctx) ? run_stack : run_concat, inputs, outputs);
  write_extents(ctx, entries);
}

void run_tensor_array_to_tensor_grad(kernel_context& ctx) {
  auto entries = entries_of(ctx);
  variable dout;
  dout.set(ctx.input("Out@GRAD"));
  std::vector<variable> gradients(entries.size());
  argument_list inputs{
    {stacks(ctx) ? "Y@GRAD" : "Out@GRAD", ctx.input_name("Out@GRAD"), &dout}};
  append(inputs, "X", entries);
  argument_list outputs;
  append(outputs, "X@GRAD", gradients);
  run_on(ctx, stacks(ctx) ? run_stack_grad : run_concat_grad, inputs, outputs);
  tensor_array array;
  for (const auto& gradient : gradients)
    array.push_back(gradient.as_tensor());
  ctx.output_variable("X@GRAD").set(std::move(array));
}

void run_select_input(kernel_context& ctx) {
  const auto branch = chosen(ctx, ctx.num_inputs("X"));
  const auto& x = ctx.input_variable("X", branch);
  if (!x.has_value())
    throw error(errc::kernel_failure, "branch " + std::to_string(branch)
                                        + ", which Mask chooses, has no value");
  ctx.output_variable("Out") = share_value(x);
}

void run_select_output(kernel_context& ctx) {
  const auto branch = chosen(ctx, ctx.num_outputs("Out"));
  if (ctx.has_output("Out", branch))
    ctx.output_variable("Out", branch) = share_value(ctx.input_variable("X"));
}

} // namespace troupe::cpu
