// SPDX-License-Identifier: Apache-2.0
// Ops that fill a tensor with one value.
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/fill/filled_shape.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace troupe::cpu {

namespace {

double constant(const kernel_context& ctx) {
  if (ctx.has_input("ValueTensor")) {
    const tensor value = ctx.input("ValueTensor");
    if (value.numel() != 1)
      throw_shape("ValueTensor", value.dims(), "expected one element");
    return cast(value, dtype::float64, ctx.on().memory()).data<double>()[0];
  }
  const std::string text = ctx.attributes().get_string("str_value", "");
  if (text.empty())
    return static_cast<double>(ctx.attributes().get_float("value", 0.0f));
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size())
    throw error(errc::invalid_argument,
                "attribute str_value " + text + " is not a number");
  return value;
}

// Converts from float64, so that every dtype rounds as a cast does.
void fill_output(kernel_context& ctx, const shape& dims, dtype type,
                 double value) {
  tensor out = ctx.output("Out", dims, type);
  if (type == dtype::float32) {
    std::ranges::fill(out.values<float>(), static_cast<float>(value));
    return;
  }
  tensor wide = tensor::make(ctx.on().memory(), dims, dtype::float64);
  std::ranges::fill(wide.values<double>(), value);
  ctx.output_variable("Out").set(cast(wide, type, ctx.on().memory()));
}

} // namespace

void run_fill_constant(kernel_context& ctx) {
  const dtype type = dtype_attribute(ctx.attributes(), "dtype", dtype::float32);
  fill_output(ctx, filled_shape(ctx), type, constant(ctx));
}

// Attribute dtype -1 means X's dtype.
void run_fill_any_like(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const bool own = ctx.attributes().get_int("dtype", -1) < 0;
  const dtype type =
    own ? x.type() : dtype_attribute(ctx.attributes(), "dtype", x.type());
  fill_output(ctx, x.dims(), type,
              static_cast<double>(ctx.attributes().get_float("value", 0.0f)));
  ctx.output_variable("Out").as_tensor().set_levels(x.levels());
}

void run_fill_zeros_like(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  fill_output(ctx, x.dims(), x.type(), 0.0);
  ctx.output_variable("Out").as_tensor().set_levels(x.levels());
}

void run_fill_constant_batch_size_like(kernel_context& ctx) {
  const dtype type = dtype_attribute(ctx.attributes(), "dtype", dtype::float32);
  fill_output(ctx, filled_shape_like_batch(ctx, true), type, constant(ctx));
}

} // namespace troupe::cpu
