// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/norm/channel_statistics.hpp>
#include <troupe/kernels/kernel.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cpu {

/// What batch norms and their gradients share. X is [N, C, ...] or [N, ..., C];
/// Scale, Bias and statistics are [C]. Results of X's shape have the layout of
/// X and are rounded if X is. In Paddle's slots, SavedVariance is the inverse
/// standard deviation.
/// Source: Ioffe and Szegedy, "Batch normalization", 2015, section 3.
class batch_norm_base : public kernel {
public:
  batch_norm_base(const attribute_map& attributes, bool fixed_in_test);

protected:
  channel_view view_of(const tensor& value) const;
  bool takes_blocks() const noexcept { return !channels_last_; }
  /// 1 / sqrt(variance + epsilon)
  void invert(float* out, const float* variance, std::int64_t n) const;

  float momentum_;
  float epsilon_;
  bool fixed_; // statistics are given, not the batch's
  bool channels_last_;
};

/// Writes Y, the batch's statistics and the running ones. As in Paddle, input
/// MomentumTensor has no effect.
class batch_norm_kernel : public batch_norm_base {
public:
  explicit batch_norm_kernel(const attribute_map& attributes);
  void run(kernel_context& ctx) override;

protected:
  /// Y = (x - mean[c]) * factor[c] + bias[c]
  virtual void write_normalized(kernel_context& ctx, const channel_view& v,
                                const tensor& x, const float* mean,
                                const float* factor, const float* bias);
  /// Y = x, for one element per channel.
  virtual void write_passed(kernel_context& ctx, const tensor& x);

private:
  void train(kernel_context& ctx, const channel_view& v, const tensor& x,
             const tensor& mean, const tensor& variance);
  void use_given(kernel_context& ctx, const channel_view& v, const tensor& x,
                 const tensor& mean, const tensor& variance);
  void pass_through(kernel_context& ctx, const channel_view& v, const tensor& x,
                    const tensor& mean, const tensor& variance);
  void normalize(kernel_context& ctx, const channel_view& v, const tensor& x,
                 const float* mean);
  void move(kernel_context& ctx, std::string_view slot, const tensor& running,
            const std::vector<float>& batch) const;

  std::vector<float> mean_;
  std::vector<float> variance_;
  std::vector<float> inverse_;
  std::vector<float> factor_;
};

/// dX = scale inv_std (dY - mean(dY) - xhat mean(dY xhat)); with given
/// statistics dX = scale inv_std dY.
class batch_norm_grad_kernel : public batch_norm_base {
public:
  /// As in Paddle, trainable_statistics only affects the forward pass.
  explicit batch_norm_grad_kernel(const attribute_map& attributes);
  void run(kernel_context& ctx) override;

protected:
  /// X and the gradient of the norm's output, with elements in the same order.
  virtual std::pair<tensor, tensor> inputs(kernel_context& ctx);
  /// As channel_gradient_sums and channel_combine.
  virtual void gradient_sums(kernel_context& ctx, const channel_view& v,
                             stored_values x, stored_values dy,
                             const float* mean, float* dot, float* total);
  virtual void combine(kernel_context& ctx, const channel_view& v,
                       stored_results dx, stored_values dy, stored_values x,
                       const float* mean, const float* dy_factor,
                       const float* x_factor, const float* offset);

  const std::vector<float>& inverse() const noexcept { return inverse_; }

private:
  std::string statistic(const kernel_context& ctx, const char* name) const;
  void read_inverse(const kernel_context& ctx, const channel_view& v);
  void input_gradient(kernel_context& ctx, const channel_view& v,
                      const tensor& x, const tensor& dy, const tensor& scale,
                      const tensor& mean, bool passed);

  std::vector<float> inverse_;
  std::vector<float> dscale_;
  std::vector<float> dbias_;
  std::vector<float> dy_factor_;
  std::vector<float> x_factor_;
  std::vector<float> offset_;
};

} // namespace troupe::cpu
