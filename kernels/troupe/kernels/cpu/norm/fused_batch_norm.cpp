// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/norm/fused_batch_norm.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/norm/batch_norm_kernels.hpp>
#include <troupe/kernels/cpu/norm/relu_norm.hpp>

#include <utility>

namespace troupe::cpu {

namespace {

class fused_batch_norm final : public batch_norm_kernel {
public:
  explicit fused_batch_norm(const attribute_map& attributes)
    : batch_norm_kernel(attributes) {
    require_relu(attributes);
  }

private:
  void write_normalized(kernel_context& ctx, const channel_view& v,
                        const tensor& x, const float* mean, const float* factor,
                        const float* bias) override {
    write_affine_relu(ctx, v, x, {mean, factor, bias});
  }

  void write_passed(kernel_context& ctx, const tensor& x) override {
    write_relu(ctx, x);
  }
};

class fused_batch_norm_grad final : public batch_norm_grad_kernel {
public:
  fused_batch_norm_grad(const attribute_map& attributes, bool behind_sum)
    : batch_norm_grad_kernel(attributes), behind_sum_(behind_sum) {
    require_relu(attributes);
  }

private:
  std::pair<tensor, tensor> inputs(kernel_context& ctx) override {
    masks_ = false;
    if (behind_sum_)
      return images_behind_sum(ctx, takes_blocks());
    const auto both = batch_norm_grad_kernel::inputs(ctx);
    const auto& [x, dy] = both;
    require_type("X", x.type(), dtype::float32);
    require_type("Y@GRAD", dy.type(), dtype::float32);
    require_shape("Y@GRAD", dy.dims(), x.dims());
    const channel_view v = view_of(x);
    masks_ = v.samples * v.pixels > 1;
    return masks_ ? both : std::pair{x, gradient_behind_relu(ctx, x, dy)};
  }

  void gradient_sums(kernel_context& ctx, const channel_view& v,
                     stored_values x, stored_values dy, const float* mean,
                     float* dot, float* total) override {
    if (!masks_)
      return batch_norm_grad_kernel::gradient_sums(ctx, v, x, dy, mean, dot,
                                                   total);
    relu_gradient_sums(ctx, v, x, dy, dot, total);
  }

  void combine(kernel_context& ctx, const channel_view& v, stored_results dx,
               stored_values dy, stored_values x, const float* mean,
               const float* dy_factor, const float* x_factor,
               const float* offset) override {
    if (!masks_)
      return batch_norm_grad_kernel::combine(ctx, v, dx, dy, x, mean, dy_factor,
                                             x_factor, offset);
    relu_combine(ctx, v, dx, dy, x, {mean, dy_factor, x_factor, offset});
  }

  bool behind_sum_;
  bool masks_ = false; // dy counts only where Y is positive
};

class recomputed_batch_norm final : public batch_norm_base {
public:
  explicit recomputed_batch_norm(const attribute_map& attributes)
    : batch_norm_base(attributes, true) {
    require_relu(attributes);
  }

  void run(kernel_context& ctx) override {
    const tensor x = takes_blocks() ? held_input(ctx, "X") : ctx.input("X");
    require_type("X", x.type(), dtype::float32);
    write_affine_relu_again(ctx, view_of(x), x);
  }
};

} // namespace

std::unique_ptr<kernel> make_fused_batch_norm(const attribute_map& attributes) {
  return std::make_unique<fused_batch_norm>(attributes);
}

std::unique_ptr<kernel>
make_fused_batch_norm_grad(const attribute_map& attributes) {
  return std::make_unique<fused_batch_norm_grad>(attributes, false);
}

std::unique_ptr<kernel>
make_fused_batch_norm_add_grad(const attribute_map& attributes) {
  return std::make_unique<fused_batch_norm_grad>(attributes, true);
}

std::unique_ptr<kernel>
make_recomputed_batch_norm(const attribute_map& attributes) {
  return std::make_unique<recomputed_batch_norm>(attributes);
}

} // namespace troupe::cpu
