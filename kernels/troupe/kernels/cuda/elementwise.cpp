// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>
#include <troupe/kernels/cuda/row_sparse.hpp>
#include <troupe/kernels/shape_only.hpp>

#include <cstdlib>
#include <string>

namespace troupe::cuda {

namespace {

template <class Function>
void run_unary(kernel_context& ctx) {
  const auto x = float_input(ctx, "X");
  auto out = float_output(ctx, "Out", x.dims());
  stream_of(ctx.queue())
    .run_for_each<unary<Function>>(
      x.numel(), {x.data<float>(), out.data<float>(), x.numel()});
}

template <class Function>
void run_unary_gradient(kernel_context& ctx) {
  const auto out = float_input(ctx, "Out"), dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), out.dims());
  auto dx = float_output(ctx, "X@GRAD", out.dims());
  stream_of(ctx.queue())
    .run_for_each<unary_gradient<Function>>(
      out.numel(),
      {out.data<float>(), dout.data<float>(), dx.data<float>(), out.numel()});
}

template <class Function>
void run_unary_gradient_at(kernel_context& ctx) {
  const auto x = float_input(ctx, "X"), dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), x.dims());
  auto dx = float_output(ctx, "X@GRAD", x.dims());
  stream_of(ctx.queue())
    .run_for_each<unary_gradient_at<Function>>(
      x.numel(),
      {x.data<float>(), dout.data<float>(), dx.data<float>(), x.numel()});
}

bool is_approximate(const kernel_context& ctx) {
  return ctx.attributes().get_bool("approximate", false);
}

// -- two operands -------------------------------------------------------------

broadcast_plan plan_operands(const kernel_context& ctx, const shape& x,
                             const shape& y) {
  return plan_broadcast(x, y, ctx.attributes().get_int("axis", -1));
}

template <class T>
void queue_add(kernel_context& ctx, const tensor& x, const tensor& y, int sign,
               tensor& out, const broadcast_plan& plan) {
  const auto count = plan.out.numel();
  stream_of(ctx.queue())
    .run_for_each<add_repeated<T>>(
      count, {x.data<T>(), y.data<T>(), out.data<T>(), count,
              static_cast<T>(sign), pairing_of(plan)});
}

void run_add(kernel_context& ctx, int sign) {
  const auto x = ctx.input("X"), y = ctx.input("Y");
  require_type("Y", y.type(), x.type());
  const auto plan = plan_operands(ctx, x.dims(), y.dims());
  auto out = ctx.output("Out", plan.out, x.type());
  switch (x.type()) {
  case dtype::float32: return queue_add<float>(ctx, x, y, sign, out, plan);
  case dtype::int32: return queue_add<std::int32_t>(ctx, x, y, sign, out, plan);
  case dtype::int64: return queue_add<std::int64_t>(ctx, x, y, sign, out, plan);
  default: throw_dtype("X", x.type(), "float32, int32 or int64");
  }
}

/// The axes of a result, first those that an operand keeps.
sum_repeated::arguments
sums_over(const broadcast_plan& plan,
          std::int64_t broadcast_plan::axis::*operand_step) {
  sum_repeated::arguments a{};
  a.count = a.repeats = 1;
  for (const bool kept : {true, false}) {
    auto step = plan.out.numel();
    for (auto& axis : plan.axes()) {
      step = axis.extent > 0 ? step / axis.extent : 0;
      if ((axis.*operand_step != 0) != kept)
        continue;
      a.extent[a.axes] = axis.extent;
      a.step[a.axes++] = step;
      (kept ? a.count : a.repeats) *= axis.extent;
    }
    if (kept)
      a.kept_axes = a.axes;
  }
  return a;
}

/// The gradient of one operand of a sum.
void run_add_gradient(kernel_context& ctx, const tensor& dout,
                      const broadcast_plan& plan, const char* slot,
                      const shape& dims, bool is_y, float factor) {
  if (!ctx.has_output(slot))
    return;
  auto to = float_output(ctx, slot, dims);
  const auto repeats = is_y ? plan.y_repeats : plan.x_repeats;
  auto& queue = stream_of(ctx.queue());
  if (!repeats && factor == 1)
    return queue_copy(stream_of(ctx.queue()), dout, to);
  if (!repeats)
    return queue.run_for_each<scale>(
      to.numel(),
      {dout.data<float>(), to.data<float>(), to.numel(), factor, 0});
  using axis = broadcast_plan::axis;
  auto a = sums_over(plan, is_y ? &axis::y_step : &axis::x_step);
  a.dout = dout.data<float>();
  a.to = to.data<float>();
  a.factor = factor;
  a.count = to.numel(); // also if nothing is added up
  queue.run<sum_repeated>({static_cast<std::uint32_t>(a.count), most_threads},
                          a);
}

void run_add_grad(kernel_context& ctx, float sign) {
  const auto x = input_shape(ctx, "X"), y = input_shape(ctx, "Y");
  const auto dout = float_input(ctx, "Out@GRAD");
  const auto plan = plan_broadcast(x, y, ctx.attributes().get_int("axis", -1));
  require_shape("Out@GRAD", dout.dims(), plan.out);
  run_add_gradient(ctx, dout, plan, "X@GRAD", x, false, 1);
  run_add_gradient(ctx, dout, plan, "Y@GRAD", y, true, sign);
}

template <class Function>
void run_combined(kernel_context& ctx) {
  const auto x = float_input(ctx, "X"), y = float_input(ctx, "Y");
  const auto plan = plan_operands(ctx, x.dims(), y.dims());
  auto out = float_output(ctx, "Out", plan.out);
  stream_of(ctx.queue())
    .run_for_each<combine_repeated<Function>>(
      out.numel(), {x.data<float>(), y.data<float>(), out.data<float>(),
                    out.numel(), pairing_of(plan)});
}

// What each element of the result adds, and then the sum as for the gradient of
// a sum.
template <class Gradient>
void run_combined_grad(kernel_context& ctx) {
  const auto x = float_input(ctx, "X"), y = float_input(ctx, "Y");
  const auto dout = float_input(ctx, "Out@GRAD");
  const auto plan = plan_operands(ctx, x.dims(), y.dims());
  require_shape("Out@GRAD", dout.dims(), plan.out);
  const auto write = [&]<class Function>(Function, const char* slot,
                                         const shape& dims, bool is_y) {
    if (!ctx.has_output(slot))
      return;
    auto parts = tensor::make(ctx.on().memory(), plan.out, dtype::float32);
    stream_of(ctx.queue())
      .run_for_each<combine_gradient<Function>>(
        parts.numel(), {x.data<float>(), y.data<float>(), dout.data<float>(),
                        parts.data<float>(), parts.numel(), pairing_of(plan)});
    run_add_gradient(ctx, parts, plan, slot, dims, is_y, 1);
  };
  write(typename Gradient::x{}, "X@GRAD", x.dims(), false);
  write(typename Gradient::y{}, "Y@GRAD", y.dims(), true);
}

// The result may lie in the memory of any term, so it is made apart if more
// than two are added.
void queue_sum(kernel_context& ctx, const std::vector<tensor>& terms,
               tensor& out) {
  for (auto& x : terms)
    require_shape("X", x.dims(), out.dims());
  auto& queue = stream_of(ctx.queue());
  if (terms.size() == 1)
    return queue_copy(queue, terms.front(), out);
  auto total = terms.size() > 2 ? ctx.scratch(out.numel()) : out;
  const auto* from = terms.front().data<float>();
  for (std::size_t i = 1; i < terms.size(); ++i) {
    auto& to = i + 1 == terms.size() ? out : total;
    queue.run_for_each<add>(out.numel(), {from, terms[i].data<float>(),
                                          to.data<float>(), out.numel()});
    from = to.data<float>();
  }
}

// -- constants ----------------------------------------------------------------

double constant_of(const attribute_map& attributes) {
  const auto text = attributes.get_string("str_value", "");
  if (text.empty())
    return attributes.get_float("value", 0);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size())
    throw error(errc::invalid_argument,
                "str_value " + text + " is not a number");
  return value;
}

template <class T>
void run_fill(kernel_context& ctx, tensor& out, double value) {
  stream_of(ctx.queue())
    .run_for_each<fill<T>>(out.numel(),
                           {out.data<T>(), out.numel(), number_as<T>(value)});
}

} // namespace

void run_relu(kernel_context& ctx) {
  run_unary<relu_function>(ctx);
}
void run_relu_grad(kernel_context& ctx) {
  run_unary_gradient<relu_function>(ctx);
}
void run_tanh(kernel_context& ctx) {
  run_unary<tanh_function>(ctx);
}
void run_tanh_grad(kernel_context& ctx) {
  run_unary_gradient<tanh_function>(ctx);
}
void run_sigmoid(kernel_context& ctx) {
  run_unary<sigmoid_function>(ctx);
}
void run_sigmoid_grad(kernel_context& ctx) {
  run_unary_gradient<sigmoid_function>(ctx);
}

void run_square(kernel_context& ctx) {
  run_unary<square_function>(ctx);
}
void run_square_grad(kernel_context& ctx) {
  run_unary_gradient_at<square_function>(ctx);
}
void run_sqrt(kernel_context& ctx) {
  run_unary<sqrt_function>(ctx);
}
void run_sqrt_grad(kernel_context& ctx) {
  run_unary_gradient<sqrt_function>(ctx);
}
void run_gelu(kernel_context& ctx) {
  is_approximate(ctx) ? run_unary<gelu_by_tanh_function>(ctx)
                      : run_unary<gelu_function>(ctx);
}
void run_gelu_grad(kernel_context& ctx) {
  is_approximate(ctx) ? run_unary_gradient_at<gelu_by_tanh_function>(ctx)
                      : run_unary_gradient_at<gelu_function>(ctx);
}

void run_scale(kernel_context& ctx) {
  const auto& attributes = ctx.attributes();
  const auto factor = attributes.get_float("scale", 1);
  const auto bias =
    attributes.get_float("bias", 0)
    * (attributes.get_bool("bias_after_scale", true) ? 1 : factor);
  if (ctx.input_variable("X").is_rows())
    return scale_rows(ctx, factor, bias);
  const auto x = float_input(ctx, "X");
  auto out = float_output(ctx, "Out", x.dims());
  stream_of(ctx.queue())
    .run_for_each<scale>(
      x.numel(), {x.data<float>(), out.data<float>(), x.numel(), factor, bias});
}

void run_sum(kernel_context& ctx) {
  std::vector<tensor> dense;
  std::vector<const selected_rows*> rows;
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i)
    if (const auto& x = ctx.input_variable("X", i); x.is_rows())
      rows.push_back(&x.as_rows());
    else
      dense.push_back(float_input(ctx, "X", i));
  if (dense.empty() && rows.empty())
    throw error(errc::invalid_argument, "sum of nothing");
  if (dense.empty())
    return sum_of_rows(ctx);
  auto out = float_output(ctx, "Out", dense.front().dims());
  queue_sum(ctx, dense, out);
  for (const auto* x : rows)
    add_rows(ctx, *x, out);
}

void run_assign(kernel_context& ctx) {
  if (ctx.input_variable("X").is_rows())
    return assign_rows(ctx);
  const auto x = ctx.input("X");
  auto out = ctx.output("Out", x.dims(), x.type());
  queue_copy(stream_of(ctx.queue()), x, out);
}

void run_fill_constant(kernel_context& ctx) {
  const auto& attributes = ctx.attributes();
  const auto type = dtype_attribute(attributes, "dtype", dtype::float32);
  auto out = ctx.output("Out", shape(attributes.get_ints("shape", {})), type);
  const auto value = constant_of(attributes);
  switch (type) {
  case dtype::float32: return run_fill<float>(ctx, out, value);
  case dtype::int32: return run_fill<std::int32_t>(ctx, out, value);
  case dtype::int64: return run_fill<std::int64_t>(ctx, out, value);
  default: throw_dtype("Out", type, "float32, int32 or int64");
  }
}

void run_elementwise_add(kernel_context& ctx) {
  run_add(ctx, 1);
}
void run_elementwise_add_grad(kernel_context& ctx) {
  run_add_grad(ctx, 1);
}
void run_elementwise_sub(kernel_context& ctx) {
  run_add(ctx, -1);
}
void run_elementwise_sub_grad(kernel_context& ctx) {
  run_add_grad(ctx, -1);
}

void run_elementwise_mul(kernel_context& ctx) {
  if (ctx.input_variable("X").is_rows())
    return multiply_rows(ctx);
  run_combined<multiply_function>(ctx);
}
void run_elementwise_div(kernel_context& ctx) {
  run_combined<divide_function>(ctx);
}
void run_elementwise_max(kernel_context& ctx) {
  run_combined<larger_function>(ctx);
}

void run_elementwise_mul_grad(kernel_context& ctx) {
  run_combined_grad<multiply_gradient>(ctx);
}
void run_elementwise_div_grad(kernel_context& ctx) {
  run_combined_grad<divide_gradient>(ctx);
}
void run_elementwise_max_grad(kernel_context& ctx) {
  run_combined_grad<larger_gradient>(ctx);
}

} // namespace troupe::cuda
