// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/row_softmax.hpp>
#include <troupe/kernels/cpu/simd.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

// Sum of weight[i] * (x[i] - origin).
TROUPE_SIMD float weighted_sum(const float* weight, const float* x,
                               float origin, std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i)
    total += weight[i] * (x[i] - origin);
  return total;
}

// Rows of classes; the class axis is the last one.
struct class_rows {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};

class cross_entropy_base : public kernel {
public:
  explicit cross_entropy_base(const attribute_map& attributes)
    : soft_(attributes.get_bool("soft_label", false)),
      ignored_(attributes.get_int("ignore_index", -100)),
      axis_(attributes.get_int("axis", -1)) {}

protected:
  class_rows rows_of(std::string_view slot, const shape& dims) const {
    if (dims.rank() == 0)
      throw_shape(slot, dims, "expected classes along the last axis");
    const std::size_t axis = normal_axis(axis_, dims.rank(), slot);
    if (dims.numel(axis + 1, dims.rank()) != 1)
      throw_shape(slot, dims, "the class axis must be the last one");
    return {dims.numel(0, axis), dims[axis]};
  }

  // The class of each row; checks that each is one.
  index_values hard_labels(const tensor& label, const class_rows& r,
                           const shape& logits) const {
    if (label.numel() != r.rows)
      throw_shapes("Label", label.dims(), "Logits", logits,
                   "expected one label per row");
    const index_values classes(label, "Label");
    for (std::int64_t i = 0; i < r.rows; ++i)
      require_class(classes[i], r.classes);
    return classes;
  }

  const float* soft_labels(const tensor& label, const shape& logits) const {
    if (label.type() != dtype::float32)
      throw error(errc::dtype_mismatch, "soft Label is "
                                          + std::string(to_string(label.type()))
                                          + ", expected float32");
    if (!(label.dims() == logits))
      throw_shapes("Label", label.dims(), "Logits", logits,
                   "soft labels need the shape of Logits");
    return label.data<float>();
  }

  bool soft_;
  std::int64_t ignored_;
  std::int64_t axis_;

private:
  void require_class(std::int64_t label, std::int64_t classes) const {
    if (label != ignored_ && (label < 0 || label >= classes))
      throw error(errc::out_of_range, "label " + std::to_string(label) + " of "
                                        + std::to_string(classes) + " classes");
  }
};

// Loss = log(sum(exp(x))) * sum(label) - sum(label * x) with x = logits -
// largest logit: no logarithm of a probability that has become zero.
class cross_entropy_kernel final : public cross_entropy_base {
public:
  using cross_entropy_base::cross_entropy_base;
  void run(kernel_context& ctx) override {
    const tensor logits = float_input(ctx, "Logits");
    const tensor label = ctx.input("Label");
    const class_rows r = rows_of("Logits", logits.dims());
    shape loss_dims = logits.dims();
    loss_dims[normal_axis(axis_, loss_dims.rank(), "Logits")] = 1;
    tensor kept; // Softmax may be written over Logits, which Loss still needs
    tensor softmax = softmax_output(ctx, logits, kept);
    const float* x = kept ? kept.data<float>() : logits.data<float>();
    if (soft_) {
      const float* y = soft_labels(label, logits.dims());
      tensor loss = float_output(ctx, "Loss", loss_dims);
      soft_loss(r, x, y, softmax.data<float>(), loss.data<float>());
    } else {
      const index_values y = hard_labels(label, r, logits.dims());
      tensor loss = float_output(ctx, "Loss", loss_dims);
      hard_loss(r, x, y, softmax.data<float>(), loss.data<float>());
    }
  }

private:
  static tensor softmax_output(kernel_context& ctx, const tensor& logits,
                               tensor& kept) {
    if (!ctx.has_output("Softmax"))
      return ctx.scratch(logits.numel());
    tensor out = float_output(ctx, "Softmax", logits.dims());
    if (out.raw() == logits.raw())
      kept = clone(logits, ctx.on().memory());
    return out;
  }

  void hard_loss(const class_rows& r, const float* x, const index_values& y,
                 float* softmax, float* loss) const {
    for (std::int64_t i = 0; i < r.rows; ++i) {
      const float* row = x + i * r.classes;
      const softmax_total total =
        row_softmax(softmax + i * r.classes, row, r.classes);
      loss[i] =
        y[i] == ignored_ ? 0.0f : total.log_total - (row[y[i]] - total.largest);
    }
  }

  static void soft_loss(const class_rows& r, const float* x, const float* y,
                        float* softmax, float* loss) {
    for (std::int64_t i = 0; i < r.rows; ++i) {
      const std::int64_t at = i * r.classes;
      const softmax_total total = row_softmax(softmax + at, x + at, r.classes);
      const auto weight = static_cast<float>(sum(y + at, r.classes));
      loss[i] = total.log_total * weight
                - weighted_sum(y + at, x + at, total.largest, r.classes);
    }
  }
};

// dLogits = dLoss * (softmax - label)
class cross_entropy_grad_kernel final : public cross_entropy_base {
public:
  using cross_entropy_base::cross_entropy_base;
  void run(kernel_context& ctx) override {
    const tensor softmax = float_input(ctx, "Softmax");
    const tensor label = ctx.input("Label");
    const tensor dloss = float_input(ctx, "Loss@GRAD");
    const class_rows r = rows_of("Softmax", softmax.dims());
    if (dloss.numel() != r.rows)
      throw_shapes("Loss@GRAD", dloss.dims(), "Softmax", softmax.dims(),
                   "expected one gradient per row");
    if (soft_)
      soft_gradient(ctx, r, softmax, soft_labels(label, softmax.dims()),
                    dloss.data<float>());
    else
      hard_gradient(ctx, r, softmax, hard_labels(label, r, softmax.dims()),
                    dloss.data<float>());
  }

private:
  void hard_gradient(kernel_context& ctx, const class_rows& r,
                     const tensor& softmax, const index_values& y,
                     const float* dloss) const {
    tensor dx = float_output(ctx, "Logits@GRAD", softmax.dims());
    for (std::int64_t i = 0; i < r.rows; ++i) {
      const std::int64_t at = i * r.classes;
      float* row = dx.data<float>() + at;
      if (y[i] == ignored_) {
        fill(row, r.classes, 0.0f);
        continue;
      }
      const float scale = dloss[i]; // dLogits may be written over it
      scale_add(row, softmax.data<float>() + at, scale, 0.0f, r.classes);
      row[y[i]] -= scale;
    }
  }

  static void soft_gradient(kernel_context& ctx, const class_rows& r,
                            const tensor& softmax, const float* y,
                            const float* dloss) {
    tensor dx = float_output(ctx, "Logits@GRAD", softmax.dims());
    for (std::int64_t i = 0; i < r.rows; ++i) {
      const std::int64_t at = i * r.classes;
      float* row = dx.data<float>() + at;
      const float scale = dloss[i];
      subtract(row, softmax.data<float>() + at, y + at, r.classes);
      scale_add(row, row, scale, 0.0f, r.classes);
    }
  }
};

} // namespace

std::unique_ptr<kernel> make_cross_entropy(const attribute_map& attributes) {
  return std::make_unique<cross_entropy_kernel>(attributes);
}

std::unique_ptr<kernel>
make_cross_entropy_grad(const attribute_map& attributes) {
  return std::make_unique<cross_entropy_grad_kernel>(attributes);
}

} // namespace troupe::cpu
