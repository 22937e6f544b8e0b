// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// The alignment of Paddle's allocator on CPUs.
constexpr std::int64_t default_alignment = 4096;

// Far more than any allocator aligns to.
constexpr std::int64_t most_alignment = std::int64_t{1} << 30;

// The bytes that a tensor takes up in the fused one.
std::int64_t room_for(const kernel_context& ctx, const tensor& value) {
  const auto bytes = static_cast<std::int64_t>(value.bytes());
  if (!ctx.attributes().get_bool("use_align", true))
    return bytes;
  const auto wanted = ctx.attributes().get_int("align_size", -1);
  const auto alignment = wanted > 0 ? wanted : default_alignment;
  if (alignment > most_alignment)
    throw error(errc::invalid_argument,
                "align_size " + std::to_string(alignment) + ", at most "
                  + std::to_string(most_alignment) + " bytes are possible");
  return (bytes + alignment - 1) / alignment * alignment;
}

// All inputs are read before any output is written: an output may be an input.
std::vector<tensor> read_inputs(const kernel_context& ctx) {
  std::vector<tensor> values;
  for (std::size_t i = 0; i < ctx.num_inputs("Input"); ++i) {
    values.push_back(ctx.input("Input", i));
    if (values[i].type() != values[0].type())
      throw error(errc::dtype_mismatch,
                  "inputs of coalesce_tensor differ in dtype",
                  {.variable = std::string(ctx.input_name("Input", i))});
  }
  return values;
}

tensor all_equal(kernel_context& ctx, const tensor& like) {
  arena& memory = ctx.on().memory();
  auto value = tensor::make(memory, like.dims(), dtype::float32);
  std::ranges::fill(value.values<float>(),
                    ctx.attributes().get_float("constant", 0.0f));
  return cast(value, like.type(), memory);
}

} // namespace

void run_coalesce_tensor(kernel_context& ctx) {
  const bool constant = ctx.attributes().get_bool("set_constant", false);
  std::vector<tensor> values = read_inputs(ctx);
  std::int64_t bytes = 0;
  for (tensor& value : values) {
    value = constant ? all_equal(ctx, value) : clone(value, ctx.on().memory());
    bytes += room_for(ctx, value);
  }
  const dtype type = values.empty() ? dtype::float32 : values[0].type();
  tensor fused = ctx.output(
    "FusedOutput", {bytes / static_cast<std::int64_t>(size_of(type))}, type);
  std::memset(fused.raw(), 0, fused.bytes());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(fused.raw() + at, values[i].raw(), values[i].bytes());
    at += room_for(ctx, values[i]);
    ctx.output_variable("Output", i).set(std::move(values[i]));
  }
}

} // namespace troupe::cpu
