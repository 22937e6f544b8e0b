// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::ref {

namespace {

axis_view view_of(const kernel_context& ctx, const shape& dims) {
  const auto axis = ctx.attributes().get_int("axis", -1);
  return around(dims, resolve_axis(axis, dims.rank()));
}

/// Calls `f(o, i)` for each line along the axis.
template <class Function>
void for_each_line(const axis_view& v, Function f) {
  for (std::int64_t o = 0; o < v.outer; ++o)
    for (std::int64_t i = 0; i < v.inner; ++i)
      f(o, i);
}

/// log softmax(x) = x - max - log(sum(exp(x - max))), with x - max at least -64
/// as in Paddle.
array log_softmax(const array& x, const axis_view& v) {
  array result(x.dims);
  for_each_line(v, [&](auto o, auto i) {
    double most = -std::numeric_limits<double>::infinity();
    for (std::int64_t e = 0; e < v.extent; ++e)
      most = std::max(most, x[v.at(o, e, i)]);
    double total = 0;
    for (std::int64_t e = 0; e < v.extent; ++e)
      total += std::exp(x[v.at(o, e, i)] - most);
    for (std::int64_t e = 0; e < v.extent; ++e)
      result[v.at(o, e, i)] =
        std::max(x[v.at(o, e, i)] - most, -64.0) - std::log(total);
  });
  return result;
}

array exponential(array x) {
  for (double& value : x.values)
    value = std::exp(value);
  return x;
}

/// Labels of softmax_with_cross_entropy: one distribution (soft) or one class
/// per line.
struct label_reader {
  const kernel_context& ctx;
  const axis_view& view;
  bool soft = ctx.attributes().get_bool("soft_label", false);
  std::int64_t ignore = ctx.attributes().get_int("ignore_index", -100);
  array labels = input(ctx, "Label");

  void check(const shape& logits) const {
    const auto expected = soft ? logits.numel() : view.outer * view.inner;
    require(labels.size() == expected, errc::shape_mismatch,
            "Label has shape " + to_string(labels.dims) + " for Logits "
              + to_string(logits));
  }

  /// The class of line (o, i), or ignore_index.
  std::int64_t hard(std::int64_t o, std::int64_t i) const {
    const auto label = static_cast<std::int64_t>(labels[o * view.inner + i]);
    require(label == ignore || (label >= 0 && label < view.extent),
            errc::out_of_range,
            "label " + std::to_string(label) + " of "
              + std::to_string(view.extent) + " classes");
    return label;
  }

  double weight(std::int64_t o, std::int64_t e, std::int64_t i) const {
    return soft ? labels[view.at(o, e, i)] : hard(o, i) == e ? 1 : 0;
  }

  bool ignored(std::int64_t o, std::int64_t i) const {
    return !soft && hard(o, i) == ignore;
  }
};

shape with_extent_one(shape dims, std::size_t axis) {
  dims[axis] = 1;
  return dims;
}

} // namespace

void softmax(kernel_context& ctx) {
  auto x = input(ctx, "X");
  output(ctx, "Out", exponential(log_softmax(x, view_of(ctx, x.dims))),
         input_type(ctx, "X"));
}

void softmax_grad(kernel_context& ctx) {
  // dX = Out * (dOut - sum(dOut * Out)).
  auto out = input(ctx, "Out"), d = input(ctx, "Out@GRAD");
  require_same("Out@GRAD", d.dims, out.dims);
  const auto v = view_of(ctx, out.dims);
  for_each_line(v, [&](auto o, auto i) {
    double dot = 0;
    for (std::int64_t e = 0; e < v.extent; ++e)
      dot += d[v.at(o, e, i)] * out[v.at(o, e, i)];
    for (std::int64_t e = 0; e < v.extent; ++e)
      d[v.at(o, e, i)] = out[v.at(o, e, i)] * (d[v.at(o, e, i)] - dot);
  });
  output(ctx, "X@GRAD", d, input_type(ctx, "Out"));
}

void softmax_with_cross_entropy(kernel_context& ctx) {
  // Loss = -sum(label * log softmax(logits)), 0 for ignored labels.
  auto logits = input(ctx, "Logits");
  const auto v = view_of(ctx, logits.dims);
  const label_reader label{ctx, v};
  label.check(logits.dims);
  const auto axis =
    resolve_axis(ctx.attributes().get_int("axis", -1), logits.dims.rank());
  auto log_p = log_softmax(logits, v);
  array loss(with_extent_one(logits.dims, axis));
  for_each_line(v, [&](auto o, auto i) {
    if (label.ignored(o, i))
      return;
    for (std::int64_t e = 0; e < v.extent; ++e)
      if (const double w = label.weight(o, e, i); w != 0)
        loss[o * v.inner + i] -= w * log_p[v.at(o, e, i)];
  });
  const auto type = input_type(ctx, "Logits");
  output_if_present(ctx, "Softmax", exponential(std::move(log_p)), type);
  output(ctx, "Loss", loss, type);
}

void softmax_with_cross_entropy_grad(kernel_context& ctx) {
  // dLogits = dLoss * (softmax - label); soft labels sum to one.
  auto p = input(ctx, "Softmax"), dloss = input(ctx, "Loss@GRAD");
  const auto v = view_of(ctx, p.dims);
  const label_reader label{ctx, v};
  label.check(p.dims);
  require(dloss.size() == v.outer * v.inner, errc::shape_mismatch,
          "Loss@GRAD has shape " + to_string(dloss.dims));
  array d(p.dims);
  for_each_line(v, [&](auto o, auto i) {
    if (label.ignored(o, i))
      return;
    for (std::int64_t e = 0; e < v.extent; ++e)
      d[v.at(o, e, i)] =
        dloss[o * v.inner + i] * (p[v.at(o, e, i)] - label.weight(o, e, i));
  });
  output(ctx, "Logits@GRAD", d, input_type(ctx, "Softmax"));
}

} // namespace troupe::ref
