// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::cpu {

namespace {

// Losses of one prediction and one label: stateless types with the names of
// their slots. p is the value of their attribute.

template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}

struct log_loss {
  static constexpr std::string_view x = "Predicted", label = "Labels",
                                    out = "Loss", attribute = "epsilon";
  static constexpr float otherwise = 1e-4f;

  template <class T>
  static T forward(T prediction, T y, T p) {
    return -y * log_of(prediction + p)
           - (T(1) - y) * log_of(T(1) - prediction + p);
  }
  template <class T>
  static T gradient(T prediction, T y, T dout, T p) {
    return dout * ((T(1) - y) / (T(1) - prediction + p) - y / (prediction + p));
  }
};

// Logarithms are at least -100.
struct bce_loss {
  static constexpr std::string_view x = "X", label = "Label", out = "Out",
                                    attribute = "";
  static constexpr float otherwise = 0.0f;

  template <class T>
  static T forward(T prediction, T y, T) {
    return (y - T(1)) * larger(log_of(T(1) - prediction), T(-100))
           - y * larger(log_of(prediction), T(-100));
  }
  template <class T>
  static T gradient(T prediction, T y, T dout, T) {
    return dout * (prediction - y)
           / larger((T(1) - prediction) * prediction, T(1e-12));
  }
};

// Labels are 0 and 1.
struct hinge_loss {
  static constexpr std::string_view x = "Logits", label = "Labels",
                                    out = "Loss", attribute = "";
  static constexpr float otherwise = 0.0f;

  template <class T>
  static T forward(T logit, T y, T) {
    const T loss = T(1) - logit * (T(2) * y - T(1));
    return loss < T(0) ? T(0) : loss;
  }
  template <class T>
  static T gradient(T logit, T y, T dout, T) {
    const T side = T(2) * y - T(1);
    return logit * side < T(1) ? -dout * side : T(0);
  }
};

// X holds log-probabilities.
struct divergence {
  static constexpr std::string_view x = "X", label = "Target", out = "Loss";

  template <class T>
  static T forward(T log_probability, T y, T) {
    return y > T(0) ? y * (log_of(y) - log_probability) : T(0);
  }
  template <class T>
  static T gradient(T, T y, T dout, T) {
    return y > T(0) ? -y * dout : T(0);
  }
};

struct sigmoid_cross_entropy {
  static constexpr std::string_view x = "X", label = "Label", out = "Out";

  template <class T>
  static T forward(T logit, T y, T ignored) {
    const T loss =
      larger(logit, T(0)) - logit * y + log_of(T(1) + exp_of(-std::abs(logit)));
    return is_ignored(y, ignored) ? T(0) : loss;
  }
  template <class T>
  static T gradient(T logit, T y, T dout, T ignored) {
    return is_ignored(y, ignored) ? T(0) : dout * (sigmoid_of(logit) - y);
  }
  template <class T>
  static bool is_ignored(T y, T ignored) {
    return std::abs(y - ignored) < T(1e-6);
  }
};

template <class Op>
struct forward_loop {
  template <class T>
  TROUPE_INLINE static void run(T* out, const T* x, const T* y, T p,
                                std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = Op::forward(x[i], y[i], p);
  }
};

// If dOut does not vary, all elements have one.
template <class Op, bool Varies>
struct gradient_loop {
  template <class T>
  TROUPE_INLINE static void run(T* dx, const T* x, const T* y, const T* dout,
                                T p, std::int64_t n) {
    const T dout0 = dout[0];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      dx[i] = Op::gradient(x[i], y[i], Varies ? dout[i] : dout0, p);
  }
};

struct operands {
  tensor x;
  tensor label;
};

template <class Op>
operands operands_of(const kernel_context& ctx) {
  operands o{ctx.input(Op::x), ctx.input(Op::label)};
  require_type(Op::label, o.label.type(), o.x.type());
  if (o.label.numel() != o.x.numel())
    throw_shapes(Op::x, o.x.dims(), Op::label, o.label.dims(),
                 "expected one label per element");
  return o;
}

template <class Op, class T>
void write_losses(const operands& o, tensor& out, T p) {
  run_simd<forward_loop<Op>>(out.data<T>(), o.x.data<T>(), o.label.data<T>(), p,
                             o.x.numel());
}

template <class Op, class T>
tensor write_gradient(kernel_context& ctx, const operands& o, T p) {
  const std::string loss_slot = std::string(Op::out) + "@GRAD";
  const tensor dout = ctx.input(loss_slot);
  require_type(loss_slot, dout.type(), o.x.type());
  const bool single = dout.numel() == 1;
  if (!single && dout.numel() != o.x.numel())
    require_shape(loss_slot, dout.dims(), o.x.dims());
  tensor dx = ctx.output(std::string(Op::x) + "@GRAD", o.x.dims(), o.x.type());
  const std::int64_t n = o.x.numel();
  if (n == 0)
    return dx;
  if (single)
    run_simd<gradient_loop<Op, false>>(dx.data<T>(), o.x.data<T>(),
                                       o.label.data<T>(), dout.data<T>(), p, n);
  else
    run_simd<gradient_loop<Op, true>>(dx.data<T>(), o.x.data<T>(),
                                      o.label.data<T>(), dout.data<T>(), p, n);
  return dx;
}

template <class Op>
void run_loss(kernel_context& ctx) {
  const operands o = operands_of<Op>(ctx);
  const float p = ctx.attributes().get_float(Op::attribute, Op::otherwise);
  tensor out = ctx.output(Op::out, o.x.dims(), o.x.type());
  for_number_type<false>(Op::x, o.x.type(), [&]<class T>(T) {
    write_losses<Op, T>(o, out, static_cast<T>(p));
  });
}

template <class Op>
void run_loss_gradient(kernel_context& ctx) {
  const operands o = operands_of<Op>(ctx);
  const float p = ctx.attributes().get_float(Op::attribute, Op::otherwise);
  for_number_type<false>(Op::x, o.x.type(), [&]<class T>(T) {
    write_gradient<Op, T>(ctx, o, static_cast<T>(p));
  });
}

template <class T>
void divide(tensor& value, double count) {
  for (T& each : value.values<T>())
    each = static_cast<T>(each / static_cast<T>(count));
}

// The divisor of the sum of divergences; 0: they are not summed.
double divisor(const kernel_context& ctx, const shape& x) {
  const auto reduction = ctx.attributes().get_string("reduction", "mean");
  const auto elements = static_cast<double>(x.numel());
  if (reduction == "mean")
    return std::max(elements, 1.0);
  if (reduction == "batchmean")
    return static_cast<double>(std::max<std::int64_t>(x.dim(0), 1));
  return reduction == "sum" ? 1.0 : 0.0;
}

void run_divergence(kernel_context& ctx) {
  const operands o = operands_of<divergence>(ctx);
  const double count = divisor(ctx, o.x.dims());
  for_number_type<false>("X", o.x.type(), [&]<class T>(T) {
    if (count == 0.0) {
      tensor out = ctx.output("Loss", o.x.dims(), o.x.type());
      return write_losses<divergence, T>(o, out, T(0));
    }
    tensor terms = tensor::make(ctx.on().memory(), o.x.dims(), o.x.type());
    write_losses<divergence, T>(o, terms, T(0));
    double total = 0.0;
    for (const T term : terms.values<T>())
      total += static_cast<double>(term);
    ctx.output("Loss", {}, o.x.type()).template data<T>()[0] =
      static_cast<T>(total / count);
  });
}

void run_divergence_gradient(kernel_context& ctx) {
  const operands o = operands_of<divergence>(ctx);
  const double count = divisor(ctx, o.x.dims());
  for_number_type<false>("X", o.x.type(), [&]<class T>(T) {
    tensor dx = write_gradient<divergence, T>(ctx, o, T(0));
    if (count > 1.0)
      divide<T>(dx, count);
  });
}

template <class T>
double counted_labels(const tensor& label, T ignored) {
  std::int64_t count = 0;
  for (const T y : label.values<T>())
    count += sigmoid_cross_entropy::is_ignored(y, ignored) ? 0 : 1;
  return std::max(static_cast<double>(count), 1e-6);
}

template <class T>
void finish_sigmoid_loss(const kernel_context& ctx, const operands& o,
                         tensor& value, T ignored) {
  if (ctx.attributes().get_bool("normalize", false))
    divide<T>(value, counted_labels<T>(o.label, ignored));
}

std::int64_t ignored_label(const kernel_context& ctx) {
  return ctx.attributes().get_int("ignore_index", -100);
}

tensor weights_of(const kernel_context& ctx, const tensor& x) {
  tensor weight = ctx.input("pos_weight");
  require_type("pos_weight", weight.type(), x.type());
  require_shape("pos_weight", weight.dims(), x.dims());
  return weight;
}

// With weights, Paddle multiplies only the logarithm by the weight, so its
// gradient is not that of its loss.
template <class T>
void weigh_losses(const operands& o, const tensor& weight, tensor& out,
                  T ignored) {
  using op = sigmoid_cross_entropy;
  const T* x = o.x.data<T>();
  const T* y = o.label.data<T>();
  T* to = out.data<T>();
  for (std::int64_t i = 0; i < o.x.numel(); ++i) {
    const T extra =
      (weight.data<T>()[i] - T(1)) * log_of(T(1) + exp_of(-std::abs(x[i])));
    to[i] += op::is_ignored(y[i], ignored) ? T(0) : extra;
  }
}

template <class T>
void weigh_gradient(kernel_context& ctx, const operands& o, tensor& dx,
                    T ignored) {
  using op = sigmoid_cross_entropy;
  const tensor weight = weights_of(ctx, o.x);
  const tensor dout = ctx.input("Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), o.x.dims());
  const T* x = o.x.data<T>();
  const T* y = o.label.data<T>();
  for (std::int64_t i = 0; i < o.x.numel(); ++i)
    dx.data<T>()[i] =
      op::is_ignored(y[i], ignored)
        ? T(0)
        : dout.data<T>()[i] * (sigmoid_of(x[i]) * weight.data<T>()[i] - y[i]);
}

void run_sigmoid_loss(kernel_context& ctx) {
  const operands o = operands_of<sigmoid_cross_entropy>(ctx);
  const std::int64_t ignored = ignored_label(ctx);
  tensor out = ctx.output("Out", o.x.dims(), o.x.type());
  for_number_type<false>("X", o.x.type(), [&]<class T>(T) {
    write_losses<sigmoid_cross_entropy, T>(o, out, static_cast<T>(ignored));
    if (ctx.has_input("pos_weight"))
      weigh_losses<T>(o, weights_of(ctx, o.x), out, static_cast<T>(ignored));
    finish_sigmoid_loss<T>(ctx, o, out, static_cast<T>(ignored));
  });
}

void run_sigmoid_loss_gradient(kernel_context& ctx) {
  const operands o = operands_of<sigmoid_cross_entropy>(ctx);
  const std::int64_t ignored = ignored_label(ctx);
  for_number_type<false>("X", o.x.type(), [&]<class T>(T) {
    tensor dx =
      write_gradient<sigmoid_cross_entropy, T>(ctx, o, static_cast<T>(ignored));
    if (ctx.has_input("pos_weight"))
      weigh_gradient<T>(ctx, o, dx, static_cast<T>(ignored));
    finish_sigmoid_loss<T>(ctx, o, dx, static_cast<T>(ignored));
  });
}

struct entry {
  const char* op_type;
  kernel_function run;
};

constexpr entry entries[] = {
  {"log_loss", run_loss<log_loss>},
  {"log_loss_grad", run_loss_gradient<log_loss>},
  {"bce_loss", run_loss<bce_loss>},
  {"bce_loss_grad", run_loss_gradient<bce_loss>},
  {"hinge_loss", run_loss<hinge_loss>},
  {"hinge_loss_grad", run_loss_gradient<hinge_loss>},
  {"kldiv_loss", run_divergence},
  {"kldiv_loss_grad", run_divergence_gradient},
  {"sigmoid_cross_entropy_with_logits", run_sigmoid_loss},
  {"sigmoid_cross_entropy_with_logits_grad", run_sigmoid_loss_gradient},
};

} // namespace

void add_pointwise_losses(kernel_table& table) {
  for (const auto& [op_type, run] : entries)
    table.add(op_type, device_kind::cpu, run);
}

} // namespace troupe::cpu
