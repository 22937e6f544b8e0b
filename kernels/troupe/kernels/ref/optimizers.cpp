// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::ref {

namespace {

/// The gradient of Param, a tensor or selected rows. Duplicate rows are added
/// up; missing rows are zero.
struct gradient {
  array values;
  std::vector<bool> occurs; ///< by row; empty for a tensor

  gradient(const kernel_context& ctx, const shape& parameter) {
    const auto& grad = ctx.input_variable("Grad");
    values = grad.is_rows() ? densify(grad.as_rows()) : input(ctx, "Grad");
    require_same("Grad", values.dims, parameter);
    if (!grad.is_rows())
      return;
    occurs.resize(static_cast<std::size_t>(parameter[0]));
    for (auto row : grad.as_rows().rows)
      occurs[static_cast<std::size_t>(row)] = true;
  }

  bool is_rows() const { return !occurs.empty(); }

  /// True for selected rows without rows. Paddle's optimizers then do nothing.
  bool empty() const {
    return is_rows()
           && std::find(occurs.begin(), occurs.end(), true) == occurs.end();
  }

  /// True if element `i` belongs to a row of the gradient.
  bool names(std::int64_t i) const {
    if (!is_rows())
      return true;
    const auto width = values.dims.numel(1, values.dims.rank());
    return occurs[static_cast<std::size_t>(i / width)];
  }
};

} // namespace

void sgd(kernel_context& ctx) {
  // p -= lr g.
  auto p = input(ctx, "Param");
  const gradient g(ctx, p.dims);
  const double lr = input_scalar(ctx, "LearningRate");
  for (std::int64_t i = 0; i < p.size(); ++i)
    p[i] -= lr * g.values[i];
  output(ctx, "ParamOut", p, input_type(ctx, "Param"));
}

void momentum(kernel_context& ctx) {
  // g = rescale g (+ coeff p);  v = mu v + g;  p -= lr v. With Nesterov's
  // look-ahead, p -= lr (g + mu v) (Sutskever et al., 2013, in Paddle's form).
  auto p = input(ctx, "Param"), v = input(ctx, "Velocity");
  require_same("Velocity", v.dims, p.dims);
  const gradient grad(ctx, p.dims);
  const double lr = input_scalar(ctx, "LearningRate");
  const auto& a = ctx.attributes();
  const double mu = a.get_float("mu", 0);
  // Paddle's CPU kernel rescales only gradients that are rows.
  const double rescale = grad.is_rows() ? a.get_float("rescale_grad", 1) : 1;
  const bool nesterov = a.get_bool("use_nesterov", false);
  const bool decays = a.get_string("regularization_method", "") == "l2_decay";
  const double coeff = decays ? a.get_float("regularization_coeff", 0) : 0;
  for (std::int64_t i = 0; i < p.size() && !grad.empty(); ++i) {
    const double g = rescale * grad.values[i] + coeff * p[i];
    v[i] = mu * v[i] + g;
    p[i] -= lr * (nesterov ? g + mu * v[i] : v[i]);
  }
  const auto type = input_type(ctx, "Param");
  output(ctx, "ParamOut", p, type);
  output(ctx, "VelocityOut", v, type);
}

void adam(kernel_context& ctx) {
  // Kingma and Ba, "Adam", 2015, algorithm 1. Beta1Pow is beta1^t at step t,
  // from 1 on. With lazy_mode, only the gradient's own rows change.
  auto p = input(ctx, "Param"), m = input(ctx, "Moment1"),
       v = input(ctx, "Moment2");
  require_same("Moment1", m.dims, p.dims);
  require_same("Moment2", v.dims, p.dims);
  const gradient grad(ctx, p.dims);
  const auto& a = ctx.attributes();
  const double beta1 = a.get_float("beta1", 0.9f);
  const double beta2 = a.get_float("beta2", 0.999f);
  const double epsilon = a.get_float("epsilon", 1e-8f);
  const bool lazy = a.get_bool("lazy_mode", false);
  const double lr = input_scalar(ctx, "LearningRate");
  const double beta1_pow = input_scalar(ctx, "Beta1Pow");
  const double beta2_pow = input_scalar(ctx, "Beta2Pow");
  // Paddle's CPU kernel for rows advances the powers in place before it reads
  // them (phi/kernels/selected_rows/cpu/adam_kernel.cc). Its bias correction is
  // therefore that of the next step.
  const bool ahead =
    grad.is_rows() && ctx.has_output("Beta1PowOut")
    && &ctx.input_variable("Beta1Pow") == &ctx.output_variable("Beta1PowOut");
  const double correction1 = 1 - beta1_pow * (ahead ? beta1 : 1);
  const double correction2 = 1 - beta2_pow * (ahead ? beta2 : 1);
  // It does not scale epsilon in missing rows either.
  const double unscaled = epsilon / std::sqrt(correction2);
  for (std::int64_t i = 0; i < p.size() && !grad.empty(); ++i) {
    if (lazy && !grad.names(i))
      continue;
    const double g = grad.values[i];
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    const double m_hat = m[i] / correction1;
    const double v_hat = v[i] / correction2;
    p[i] -=
      lr * m_hat / (std::sqrt(v_hat) + (grad.names(i) ? epsilon : unscaled));
  }
  const auto type = input_type(ctx, "Param");
  output(ctx, "ParamOut", p, type);
  output(ctx, "Moment1Out", m, type);
  output(ctx, "Moment2Out", v, type);
  output_if_present(ctx, "Beta1PowOut",
                    array(shape{1}, beta1_pow * (grad.empty() ? 1 : beta1)),
                    input_type(ctx, "Beta1Pow"));
  output_if_present(ctx, "Beta2PowOut",
                    array(shape{1}, beta2_pow * (grad.empty() ? 1 : beta2)),
                    input_type(ctx, "Beta2Pow"));
}

} // namespace troupe::ref
