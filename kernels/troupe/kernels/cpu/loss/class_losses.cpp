// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/loss/class_labels.hpp>

#include <algorithm>
#include <vector>

namespace troupe::cpu {

namespace {

// The classes are along the last axis of X, which holds probabilities.
struct class_rows {
  std::int64_t rows;
  std::int64_t classes;
};

class_rows rows_of(const shape& x) {
  const std::int64_t classes = x.dim(-1);
  return {classes == 0 ? 0 : x.numel() / classes, classes};
}

template <class T>
T soft_loss(const T* p, const T* label, std::int64_t n) {
  T loss = 0;
  for (std::int64_t i = 0; i < n; ++i)
    loss += label[i] == T(0) ? T(0) : label[i] * negative_log(p[i]);
  return loss;
}

void write_loss(kernel_context& ctx, const class_labels& labels,
                const tensor& x) {
  const tensor label = ctx.input("Label");
  const shape lines = labels.line_dims("X", x.dims());
  const class_rows r = rows_of(x.dims());
  if (labels.soft())
    labels.require_soft(label, "X", x.dims(), x.type());
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor y = ctx.output("Y", lines, x.type());
    const T* p = x.data<T>();
    T* to = y.data<T>();
    if (labels.soft()) {
      for (std::int64_t i = 0; i < r.rows; ++i, p += r.classes)
        to[i] = soft_loss(p, label.data<T>() + i * r.classes, r.classes);
      return;
    }
    const auto classes = labels.hard(label, "X", x.dims());
    for (std::int64_t i = 0; i < r.rows; ++i, p += r.classes)
      to[i] = labels.ignores(classes[i]) ? T(0) : negative_log(p[classes[i]]);
  });
}

tensor gradient_of_rows(const kernel_context& ctx, const shape& x, dtype type) {
  tensor dy = ctx.input("Y@GRAD");
  require_type("Y@GRAD", dy.type(), type);
  if (dy.numel() != rows_of(x).rows)
    throw_shapes("Y@GRAD", dy.dims(), "X", x, "expected one gradient per row");
  return dy;
}

} // namespace

void run_cross_entropy(kernel_context& ctx) {
  write_loss(ctx, class_labels(ctx.attributes()), ctx.input("X"));
}

// dX = -dY * label / X
void run_cross_entropy_grad(kernel_context& ctx) {
  const class_labels labels(ctx.attributes());
  const tensor x = ctx.input("X");
  const tensor label = ctx.input("Label");
  labels.axis_of("X", x.dims());
  const class_rows r = rows_of(x.dims());
  const tensor dy = gradient_of_rows(ctx, x.dims(), x.type());
  if (labels.soft())
    labels.require_soft(label, "X", x.dims(), x.type());
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor dx = ctx.output("X@GRAD", x.dims(), x.type());
    const T* p = x.data<T>();
    const T* d = dy.data<T>();
    T* to = dx.data<T>();
    if (labels.soft()) {
      const T* y = label.data<T>();
      for (std::int64_t i = 0; i < x.numel(); ++i)
        to[i] = -d[i / r.classes] * y[i] / p[i];
      return;
    }
    const auto classes = labels.hard(label, "X", x.dims());
    std::fill_n(to, x.numel(), T(0));
    for (std::int64_t i = 0; i < r.rows; ++i)
      if (!labels.ignores(classes[i])) {
        const std::int64_t at = i * r.classes + classes[i];
        to[at] = -d[i] / p[at];
      }
  });
}

// Saves the probability of each label for the gradient, which does not read X.
void run_cross_entropy2(kernel_context& ctx) {
  const class_labels labels(ctx.attributes());
  const tensor x = ctx.input("X");
  write_loss(ctx, labels, x);
  write_xshape(ctx, x.dims(), x.type());
  const class_rows r = rows_of(x.dims());
  const auto classes = labels.hard(ctx.input("Label"), "X", x.dims());
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor match =
      ctx.output("MatchX", labels.line_dims("X", x.dims()), x.type());
    for (std::int64_t i = 0; i < r.rows; ++i)
      match.data<T>()[i] = labels.ignores(classes[i])
                             ? T(0)
                             : x.data<T>()[i * r.classes + classes[i]];
  });
}

void run_cross_entropy2_grad(kernel_context& ctx) {
  const class_labels labels(ctx.attributes());
  const tensor match = ctx.input("MatchX");
  const shape saved = ctx.input("XShape").dims();
  if (saved.rank() < 2)
    throw_shape("XShape", saved, "expected [0, extents of X...]");
  const shape dims(saved.dims().subspan(1));
  const class_rows r = rows_of(dims);
  const tensor dy = gradient_of_rows(ctx, dims, match.type());
  if (match.numel() != r.rows)
    throw_shapes("MatchX", match.dims(), "XShape", saved,
                 "expected one element per row");
  const auto classes = labels.hard(ctx.input("Label"), "XShape", dims);
  for_number_type<false>("MatchX", match.type(), [&]<class T>(T) {
    tensor dx = ctx.output("X@GRAD", dims, match.type());
    T* to = dx.data<T>();
    std::fill_n(to, dims.numel(), T(0));
    for (std::int64_t i = 0; i < r.rows; ++i)
      if (!labels.ignores(classes[i]))
        to[i * r.classes + classes[i]] = -dy.data<T>()[i] / match.data<T>()[i];
  });
}

} // namespace troupe::cpu
