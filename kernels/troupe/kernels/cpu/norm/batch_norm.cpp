// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/norm/batch_norm_kernels.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/layout/image_layout.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <cmath>

namespace troupe::cpu {

namespace {

void write(kernel_context& ctx, std::string_view slot, const channel_view& v,
           const float* values) {
  if (!ctx.has_output(slot))
    return;
  tensor out = float_output(ctx, slot, {v.channels});
  copy(out.data<float>(), values, v.channels);
}

} // namespace

// -- batch_norm_base ----------------------------------------------------------

batch_norm_base::batch_norm_base(const attribute_map& attributes,
                                 bool fixed_in_test)
  : momentum_(attributes.get_float("momentum", 0.9f)),
    epsilon_(attributes.get_float("epsilon", 1e-5f)),
    fixed_((attributes.get_bool("is_test", false) && fixed_in_test)
           || attributes.get_bool("use_global_stats", false)),
    channels_last_(has_channels_last(attributes, "data_layout")) {}

channel_view batch_norm_base::view_of(const tensor& value) const {
  const shape& x = value.dims();
  const std::size_t rank = x.rank();
  if (rank < 2)
    throw_shape("X", x, "expected [N, C, ...] or [N, ..., C]");
  if (channels_last_)
    return {x.numel(0, rank - 1), x[rank - 1], 1};
  return {x[0], x[1], x.numel(2, rank), block_of(value)};
}

void batch_norm_base::invert(float* out, const float* variance,
                             std::int64_t n) const {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = 1.0f / std::sqrt(variance[i] + epsilon_);
}

// -- batch_norm_kernel --------------------------------------------------------

batch_norm_kernel::batch_norm_kernel(const attribute_map& attributes)
  : batch_norm_base(attributes,
                    !attributes.get_bool("trainable_statistics", false)) {}

void batch_norm_kernel::run(kernel_context& ctx) {
  const tensor x = takes_blocks() ? held_input(ctx, "X") : ctx.input("X");
  require_type("X", x.type(), dtype::float32);
  const channel_view v = view_of(x);
  const tensor mean = vector_input(ctx, "Mean", v.channels);
  const tensor variance = vector_input(ctx, "Variance", v.channels);
  if (ctx.has_output("ReserveSpace")) // other libraries' scratch
    float_output(ctx, "ReserveSpace", {0});
  if (fixed_)
    use_given(ctx, v, x, mean, variance);
  else if (v.samples * v.pixels > 1)
    train(ctx, v, x, mean, variance);
  else
    pass_through(ctx, v, x, mean, variance);
}

void batch_norm_kernel::write_normalized(kernel_context& ctx,
                                         const channel_view& v, const tensor& x,
                                         const float* mean, const float* factor,
                                         const float* bias) {
  tensor y = output_like(ctx, "Y", x);
  const auto to = results_of(y);
  const auto from = values_of(x);
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    const auto at = v.at(0, c);
    channel_affine(part, to + at, from + at, mean + c, factor + c, bias + c);
  });
}

void batch_norm_kernel::write_passed(kernel_context& ctx, const tensor& x) {
  tensor y = output_like(ctx, "Y", x);
  copy_stored(results_of(y), values_of(x), x.numel());
}

void batch_norm_kernel::train(kernel_context& ctx, const channel_view& v,
                              const tensor& x, const tensor& mean,
                              const tensor& variance) {
  const auto channels = static_cast<std::size_t>(v.channels);
  mean_.resize(channels);
  variance_.resize(channels);
  inverse_.resize(channels);
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    channel_moments(part, values_of(x) + v.at(0, c), mean_.data() + c,
                    variance_.data() + c);
  });
  invert(inverse_.data(), variance_.data(), v.channels);
  normalize(ctx, v, x, mean_.data());
  move(ctx, "MeanOut", mean, mean_);
  move(ctx, "VarianceOut", variance, variance_);
  write(ctx, "SavedMean", v, mean_.data());
  write(ctx, "SavedVariance", v, inverse_.data());
}

void batch_norm_kernel::use_given(kernel_context& ctx, const channel_view& v,
                                  const tensor& x, const tensor& mean,
                                  const tensor& variance) {
  inverse_.resize(static_cast<std::size_t>(v.channels));
  invert(inverse_.data(), variance.data<float>(), v.channels);
  normalize(ctx, v, x, mean.data<float>());
  write(ctx, "MeanOut", v, mean.data<float>());
  write(ctx, "VarianceOut", v, variance.data<float>());
  write(ctx, "SavedMean", v, mean.data<float>());
  write(ctx, "SavedVariance", v, inverse_.data());
}

// One element per channel has no variance: as in Paddle, X is passed through,
// zeros are saved and the running statistics stay.
void batch_norm_kernel::pass_through(kernel_context& ctx, const channel_view& v,
                                     const tensor& x, const tensor& mean,
                                     const tensor& variance) {
  write_passed(ctx, x);
  write(ctx, "MeanOut", v, mean.data<float>());
  write(ctx, "VarianceOut", v, variance.data<float>());
  mean_.assign(static_cast<std::size_t>(v.channels), 0.0f);
  write(ctx, "SavedMean", v, mean_.data());
  write(ctx, "SavedVariance", v, mean_.data());
}

// Y = (x - mean[c]) * scale[c] / deviation[c] + bias[c]
void batch_norm_kernel::normalize(kernel_context& ctx, const channel_view& v,
                                  const tensor& x, const float* mean) {
  const tensor scale = vector_input(ctx, "Scale", v.channels, 1.0f);
  const tensor bias = vector_input(ctx, "Bias", v.channels, 0.0f);
  factor_.resize(inverse_.size());
  multiply(factor_.data(), scale.data<float>(), inverse_.data(), v.channels);
  write_normalized(ctx, v, x, mean, factor_.data(), bias.data<float>());
}

// running = momentum running + (1 - momentum) batch
void batch_norm_kernel::move(kernel_context& ctx, std::string_view slot,
                             const tensor& running,
                             const std::vector<float>& batch) const {
  if (!ctx.has_output(slot))
    return;
  tensor out = float_output(ctx, slot, running.dims());
  scale_add(out.data<float>(), running.data<float>(), momentum_, 0.0f,
            out.numel());
  accumulate(out.data<float>(), batch.data(), 1.0f - momentum_, out.numel());
}

// -- batch_norm_grad_kernel ---------------------------------------------------

batch_norm_grad_kernel::batch_norm_grad_kernel(const attribute_map& attributes)
  : batch_norm_base(attributes, true) {}

void batch_norm_grad_kernel::run(kernel_context& ctx) {
  const auto [x, dy] = inputs(ctx);
  require_type("X", x.type(), dtype::float32);
  require_type("Y@GRAD", dy.type(), dtype::float32);
  require_shape("Y@GRAD", dy.dims(), x.dims());
  const channel_view v = view_of(x);
  const tensor scale = vector_input(ctx, "Scale", v.channels, 1.0f);
  const tensor mean = vector_input(ctx, statistic(ctx, "Mean"), v.channels);
  read_inverse(ctx, v);
  const bool passed = !fixed_ && v.samples * v.pixels <= 1;
  dscale_.assign(inverse_.size(), 0.0f);
  dbias_.assign(inverse_.size(), 0.0f);
  if (!passed)
    gradient_sums(ctx, v, values_of(x), values_of(dy), mean.data<float>(),
                  dscale_.data(), dbias_.data());
  multiply(dscale_.data(), dscale_.data(), inverse_.data(), v.channels);
  if (ctx.has_output("X@GRAD"))
    input_gradient(ctx, v, x, dy, scale, mean, passed);
  write(ctx, "Scale@GRAD", v, dscale_.data());
  write(ctx, "Bias@GRAD", v, dbias_.data());
}

std::pair<tensor, tensor> batch_norm_grad_kernel::inputs(kernel_context& ctx) {
  if (takes_blocks())
    return alike_held_inputs(ctx, "X", "Y@GRAD");
  return {ctx.input("X"), ctx.input("Y@GRAD")};
}

void batch_norm_grad_kernel::gradient_sums(kernel_context& ctx,
                                           const channel_view& v,
                                           stored_values x, stored_values dy,
                                           const float* mean, float* dot,
                                           float* total) {
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    const auto at = v.at(0, c);
    channel_gradient_sums(part, x + at, dy + at, mean + c, dot + c, total + c);
  });
}

void batch_norm_grad_kernel::combine(kernel_context& ctx, const channel_view& v,
                                     stored_results dx, stored_values dy,
                                     stored_values x, const float* mean,
                                     const float* dy_factor,
                                     const float* x_factor,
                                     const float* offset) {
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    const auto at = v.at(0, c);
    channel_combine(part, dx + at, dy + at, x + at, mean + c, dy_factor + c,
                    x_factor + c, offset + c);
  });
}

// The slot of a statistic. The batch's is what the forward pass saved. A given
// one is an input; some programs list it as an output of the forward op.
std::string batch_norm_grad_kernel::statistic(const kernel_context& ctx,
                                              const char* name) const {
  if (!fixed_)
    return std::string("Saved") + name;
  return ctx.has_input(name) ? name : std::string(name) + "Out";
}

void batch_norm_grad_kernel::read_inverse(const kernel_context& ctx,
                                          const channel_view& v) {
  inverse_.resize(static_cast<std::size_t>(v.channels));
  if (fixed_)
    invert(
      inverse_.data(),
      vector_input(ctx, statistic(ctx, "Variance"), v.channels).data<float>(),
      v.channels);
  else
    copy(inverse_.data(),
         vector_input(ctx, "SavedVariance", v.channels).data<float>(),
         v.channels);
}

void batch_norm_grad_kernel::input_gradient(kernel_context& ctx,
                                            const channel_view& v,
                                            const tensor& x, const tensor& dy,
                                            const tensor& scale,
                                            const tensor& mean, bool passed) {
  tensor dx = output_like(ctx, "X@GRAD", x);
  if (passed)
    return copy_stored(results_of(dx), values_of(dy), dx.numel());
  dy_factor_.resize(inverse_.size());
  x_factor_.assign(inverse_.size(), 0.0f);
  offset_.assign(inverse_.size(), 0.0f);
  multiply(dy_factor_.data(), scale.data<float>(), inverse_.data(), v.channels);
  const float share = 1.0f / static_cast<float>(v.samples * v.pixels);
  for (std::size_t c = 0; c < inverse_.size() && !fixed_; ++c) {
    x_factor_[c] = -dy_factor_[c] * dscale_[c] * inverse_[c] * share;
    offset_[c] = -dy_factor_[c] * dbias_[c] * share;
  }
  combine(ctx, v, results_of(dx), values_of(dy), values_of(x),
          mean.data<float>(), dy_factor_.data(), x_factor_.data(),
          offset_.data());
}

std::unique_ptr<kernel> make_batch_norm(const attribute_map& attributes) {
  return std::make_unique<batch_norm_kernel>(attributes);
}

std::unique_ptr<kernel> make_batch_norm_grad(const attribute_map& attributes) {
  return std::make_unique<batch_norm_grad_kernel>(attributes);
}

} // namespace troupe::cpu
