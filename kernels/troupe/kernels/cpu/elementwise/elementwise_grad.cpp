// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/binary.hpp>
#include <troupe/kernels/cpu/elementwise/elementwise_ops.hpp>
#include <troupe/kernels/cpu/elementwise/planned_broadcast.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/shape_only.hpp>

namespace troupe::cpu {

namespace {

using namespace elementwise;

// The plan with X and Y exchanged.
broadcast_plan swapped(broadcast_plan plan) {
  for (auto& a : plan.all_axes)
    std::swap(a.x_step, a.y_step);
  std::swap(plan.x_repeats, plan.y_repeats);
  return plan;
}

// `value`, or a copy if writing X@GRAD would overwrite it.
tensor kept(kernel_context& ctx, const tensor& value) {
  const variable& written = ctx.output_variable("X@GRAD");
  if (written.is_tensor() && written.as_tensor()
      && written.as_tensor().raw() == value.raw())
    return clone(value, ctx.on().memory());
  return value;
}

// The gradients of X + Y and X - Y, which are sums of dOut.
class passing_gradient final : public planned_broadcast {
public:
  passing_gradient(const attribute_map& attributes, bool minus)
    : planned_broadcast(attributes), minus_(minus) {}

  void run(kernel_context& ctx) override {
    const tensor dout = stored_input(ctx, "Out@GRAD");
    const shape x = input_shape(ctx, "X");
    const shape y = input_shape(ctx, "Y");
    const broadcast_plan& p = plan(x, y);
    require_shape("Out@GRAD", dout.dims(), p.out);
    if (!dout.is_plain() && !minus_ && passes_blocks(ctx, dout, x, y))
      return;
    const tensor plain = ctx.input("Out@GRAD");
    if (ctx.has_output("X@GRAD"))
      write(ctx, "X@GRAD", p, plain, x, false);
    if (ctx.has_output("Y@GRAD"))
      write(ctx, "Y@GRAD", swapped(p), plain, y, minus_);
  }

private:
  // Handles the gradient of a sum of images if it is in blocks: X@GRAD and
  // Y@GRAD are that tensor, or its sums per channel.
  bool passes_blocks(kernel_context& ctx, const tensor& dout, const shape& x,
                     const shape& y) const {
    const bool same = y == dout.dims();
    if (!(x == dout.dims()) || (!same && !is_per_channel(x, y, axis())))
      return false;
    if (ctx.has_output("X@GRAD"))
      ctx.output_variable("X@GRAD").set(dout.share());
    if (!ctx.has_output("Y@GRAD"))
      return true;
    if (same) {
      ctx.output_variable("Y@GRAD").set(dout.share());
    } else {
      tensor dy = ctx.output("Y@GRAD", y, dout.type());
      sum_channels(dy.data<float>(), dout.data<float>(), dout.dims(),
                   block_of(dout));
    }
    return true;
  }

  // Writes the gradient of the plan's operand X.
  static void write(kernel_context& ctx, std::string_view slot,
                    const broadcast_plan& p, const tensor& dout,
                    const shape& dims, bool negative) {
    if (!p.x_repeats && !negative)
      return ctx.output_variable(slot).set(dout.reshaped(dims).share());
    for_number_type("Out@GRAD", dout.type(), [&]<class T>(T) {
      tensor dx = ctx.output(slot, dims, dout.type());
      reduce_to_x(p, dout.data<T>(), negative ? T(-1) : T(1), dx.data<T>(),
                  dx.numel());
    });
  }

  bool minus_;
};

template <class Op>
class elementwise_gradient final : public planned_broadcast {
public:
  using planned_broadcast::planned_broadcast;
  void run(kernel_context& ctx) override {
    const bool both = ctx.has_output("X@GRAD") && ctx.has_output("Y@GRAD");
    tensor x = ctx.input("X");
    const tensor y = ctx.input("Y");
    tensor dout = ctx.input("Out@GRAD");
    require_type("Y", y.type(), x.type());
    require_type("Out@GRAD", dout.type(), x.type());
    const broadcast_plan& p = plan(x.dims(), y.dims());
    require_shape("Out@GRAD", dout.dims(), p.out);
    if (both) {
      x = kept(ctx, x);
      dout = kept(ctx, dout);
    }
    for_number_type<false>("X", x.type(), [&]<class T>(T) {
      if (ctx.has_output("X@GRAD"))
        write<typename Op::x, T>(ctx, "X@GRAD", p, p, x, y, dout, x.dims());
      if (ctx.has_output("Y@GRAD"))
        write<typename Op::y, T>(ctx, "Y@GRAD", p, swapped(p), x, y, dout,
                                 y.dims());
    });
  }

private:
  // Computes terms of Out's shape and sums them for the operand that `side`
  // describes.
  template <class Term, class T>
  static void write(kernel_context& ctx, std::string_view slot,
                    const broadcast_plan& p, const broadcast_plan& side,
                    const tensor& x, const tensor& y, const tensor& dout,
                    const shape& dims) {
    tensor out = ctx.output(slot, dims, dout.type());
    tensor terms = side.x_repeats
                     ? tensor::make(ctx.on().memory(), p.out, dout.type())
                     : out;
    apply_gradient<Term>(p, terms.data<T>(), x.data<T>(), y.data<T>(),
                         values_in<T>(dout));
    if (side.x_repeats)
      reduce_to_x(side, values_in<T>(terms), T(1), out.data<T>(), out.numel());
  }
};

struct gradient_entry {
  const char* op_type;
  kernel_factory make;
};

template <class Op>
constexpr gradient_entry gradient_entry_of(const char* op_type) {
  return {op_type, [](const attribute_map& attributes) {
            return std::unique_ptr<kernel>(
              std::make_unique<elementwise_gradient<Op>>(attributes));
          }};
}

template <bool Minus>
constexpr gradient_entry passing(const char* op_type) {
  return {op_type, [](const attribute_map& attributes) {
            return std::unique_ptr<kernel>(
              std::make_unique<passing_gradient>(attributes, Minus));
          }};
}

constexpr gradient_entry gradient_entries[] = {
  passing<false>("elementwise_add_grad"),
  passing<true>("elementwise_sub_grad"),
  gradient_entry_of<multiply_gradient>("elementwise_mul_grad"),
  gradient_entry_of<divide_gradient>("elementwise_div_grad"),
  gradient_entry_of<maximum_gradient>("elementwise_max_grad"),
  gradient_entry_of<minimum_gradient>("elementwise_min_grad"),
  gradient_entry_of<power_gradient>("elementwise_pow_grad"),
};

} // namespace

void add_elementwise_gradients(kernel_table& table) {
  for (const auto& [op_type, make] : gradient_entries)
    table.add(op_type, device_kind::cpu, make);
}

} // namespace troupe::cpu
