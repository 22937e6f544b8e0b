// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/broadcast.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

namespace troupe::cpu {

namespace {

enum class arithmetic { add, subtract, multiply };

TROUPE_SIMD void subtract_from(float* out, const float* x, float minuend,
                               std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = minuend - x[i];
}

void apply(arithmetic op, float* out, const float* x, const float* y,
           std::int64_t n) {
  switch (op) {
  case arithmetic::add: return add(out, x, y, n);
  case arithmetic::subtract: return subtract(out, x, y, n);
  case arithmetic::multiply: return multiply(out, x, y, n);
  }
}

// X varies, Y is one value.
void apply_scalar_y(arithmetic op, float* out, const float* x, float y,
                    std::int64_t n) {
  switch (op) {
  case arithmetic::add: return scale_add(out, x, 1.0f, y, n);
  case arithmetic::subtract: return scale_add(out, x, 1.0f, -y, n);
  case arithmetic::multiply: return scale_add(out, x, y, 0.0f, n);
  }
}

void apply_scalar_x(arithmetic op, float* out, float x, const float* y,
                    std::int64_t n) {
  if (op == arithmetic::subtract)
    subtract_from(out, y, x, n);
  else
    apply_scalar_y(op, out, y, x, n);
}

void apply_broadcast(arithmetic op, const broadcast_plan& plan, float* out,
                     const float* x, const float* y) {
  const auto& last = plan.axes.back();
  const std::int64_t n = last.extent;
  for_each_row(plan, [&](std::int64_t o, std::int64_t i, std::int64_t j) {
    if (last.y_step == 0)
      apply_scalar_y(op, out + o, x + i, y[j], n);
    else if (last.x_step == 0)
      apply_scalar_x(op, out + o, x[i], y + j, n);
    else
      apply(op, out + o, x + i, y + j, n);
  });
}

// The plan read from Y's side.
broadcast_plan swapped(broadcast_plan plan) {
  for (auto& a : plan.axes)
    std::swap(a.x_step, a.y_step);
  std::swap(plan.x_repeats, plan.y_repeats);
  return plan;
}

class elementwise_base : public kernel {
public:
  elementwise_base(arithmetic op, const attribute_map& attributes)
    : op_(op), axis_(attributes.get_int("axis", -1)) {}

protected:
  const broadcast_plan& plan(const shape& x, const shape& y) {
    if (!planned_ || !(x == x_) || !(y == y_)) {
      plan_ = plan_broadcast(x, y, axis_);
      mirror_ = swapped(plan_);
      x_ = x;
      y_ = y;
      planned_ = true;
    }
    return plan_;
  }
  const broadcast_plan& mirror() const noexcept { return mirror_; }

  arithmetic op_;

private:
  std::int64_t axis_;
  broadcast_plan plan_;
  broadcast_plan mirror_;
  shape x_;
  shape y_;
  bool planned_ = false;
};

class elementwise_kernel final : public elementwise_base {
public:
  using elementwise_base::elementwise_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const tensor y = float_input(ctx, "Y");
    const broadcast_plan& p = plan(x.dims(), y.dims());
    tensor out = float_output(ctx, "Out", p.out);
    apply_broadcast(op_, p, out.data<float>(), x.data<float>(),
                    y.data<float>());
  }
};

class elementwise_grad_kernel final : public elementwise_base {
public:
  using elementwise_base::elementwise_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const tensor y = float_input(ctx, "Y");
    const tensor dout = float_input(ctx, "Out@GRAD");
    const broadcast_plan& p = plan(x.dims(), y.dims());
    require_shape("Out@GRAD", dout.dims(), p.out);
    const bool x_present = ctx.has_output("X@GRAD");
    const bool y_present = ctx.has_output("Y@GRAD");
    const bool keep = x_present && y_present && op_ == arithmetic::multiply;
    const tensor kept_x = keep ? kept(ctx, x) : x;
    const tensor kept_dout = keep ? kept(ctx, dout) : dout;
    const float y_sign = op_ == arithmetic::subtract ? -1.0f : 1.0f;
    if (x_present)
      gradient(ctx, "X@GRAD", p, kept_dout, y, 1.0f, x.dims());
    if (y_present)
      gradient(ctx, "Y@GRAD", mirror(), kept_dout, kept_x, y_sign, y.dims());
  }

private:
  // `value`, or a copy of it if X@GRAD is about to be written over it.
  static tensor kept(kernel_context& ctx, const tensor& value) {
    const variable& written = ctx.output_variable("X@GRAD");
    if (written.is_tensor() && written.as_tensor().raw() == value.raw())
      return clone(value, ctx.on().memory());
    return value;
  }

  // Gradient of the plan's x operand; `other` is the plan's y operand.
  void gradient(kernel_context& ctx, std::string_view slot,
                const broadcast_plan& p, const tensor& dout,
                const tensor& other, float sign, const shape& dims) const {
    if (op_ == arithmetic::multiply)
      return product_gradient(ctx, slot, p, dout, other, dims);
    if (!p.x_repeats && sign == 1.0f)
      return ctx.output_variable(slot).set(dout.reshaped(dims).share());
    tensor dx = float_output(ctx, slot, dims);
    if (!p.x_repeats)
      return scale_add(dx.data<float>(), dout.data<float>(), sign, 0.0f,
                       dx.numel());
    reduce_to_x(p, dout.data<float>(), sign, dx.data<float>(), dx.numel());
  }

  static void product_gradient(kernel_context& ctx, std::string_view slot,
                               const broadcast_plan& p, const tensor& dout,
                               const tensor& other, const shape& dims) {
    tensor dx = float_output(ctx, slot, dims);
    tensor product = p.x_repeats ? ctx.scratch(p.out.numel()) : dx;
    broadcast_plan full = p; // Out@GRAD in X's place: all of Out's elements
    std::int64_t step = 1;
    for (auto a = full.axes.rbegin(); a != full.axes.rend(); ++a) {
      a->x_step = step;
      step *= a->extent;
    }
    apply_broadcast(arithmetic::multiply, full, product.data<float>(),
                    dout.data<float>(), other.data<float>());
    if (p.x_repeats)
      reduce_to_x(p, product.data<float>(), 1.0f, dx.data<float>(), dx.numel());
  }
};

} // namespace

std::unique_ptr<kernel> make_elementwise_add(const attribute_map& attributes) {
  return std::make_unique<elementwise_kernel>(arithmetic::add, attributes);
}
std::unique_ptr<kernel> make_elementwise_sub(const attribute_map& attributes) {
  return std::make_unique<elementwise_kernel>(arithmetic::subtract, attributes);
}
std::unique_ptr<kernel> make_elementwise_mul(const attribute_map& attributes) {
  return std::make_unique<elementwise_kernel>(arithmetic::multiply, attributes);
}
std::unique_ptr<kernel>
make_elementwise_add_grad(const attribute_map& attributes) {
  return std::make_unique<elementwise_grad_kernel>(arithmetic::add, attributes);
}
std::unique_ptr<kernel>
make_elementwise_sub_grad(const attribute_map& attributes) {
  return std::make_unique<elementwise_grad_kernel>(arithmetic::subtract,
                                                   attributes);
}
std::unique_ptr<kernel>
make_elementwise_mul_grad(const attribute_map& attributes) {
  return std::make_unique<elementwise_grad_kernel>(arithmetic::multiply,
                                                   attributes);
}

} // namespace troupe::cpu
