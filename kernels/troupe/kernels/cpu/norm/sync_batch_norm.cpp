// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/layout/image_layout.hpp>
#include <troupe/kernels/cpu/norm/channel_statistics.hpp>
#include <troupe/kernels/cpu/norm/relu_norm.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <cmath>
#include <utility>
#include <vector>

// Batch norm over several devices, in the parts into which graph's pass
// sync_batch_norm splits it. Moments is [devices, 1 + 2 channels]: the number
// of elements per channel, their means, their biased variances. With an
// attribute act_type, a relu follows the norm, and there may be a sum before
// the relu.
namespace troupe::cpu {

namespace {

using floats = std::vector<float>;

bool channels_last(const kernel_context& ctx) {
  return has_channels_last(ctx.attributes(), "data_layout");
}

channel_view view_of(const kernel_context& ctx, const tensor& value) {
  const shape& x = value.dims();
  const std::size_t rank = x.rank();
  if (rank < 2)
    throw_shape("X", x, "expected [N, C, ...] or [N, ..., C]");
  if (channels_last(ctx))
    return {x.numel(0, rank - 1), x[rank - 1], 1};
  return {x[0], x[1], x.numel(2, rank), block_of(value)};
}

// Whether a relu follows the norm.
bool has_relu(const kernel_context& ctx) {
  if (ctx.attributes().get_string("act_type", "").empty())
    return false;
  require_relu(ctx.attributes());
  return true;
}

// X in its own layout, which results of its shape get, too.
tensor images(const kernel_context& ctx) {
  const tensor x = channels_last(ctx) ? ctx.input("X") : held_input(ctx, "X");
  require_type("X", x.type(), dtype::float32);
  return x;
}

std::pair<tensor, tensor> held_with_gradient(kernel_context& ctx) {
  if (ctx.has_input("Y"))
    return images_behind_sum(ctx, !channels_last(ctx));
  if (channels_last(ctx))
    return {ctx.input("X"), ctx.input("Y@GRAD")};
  return alike_held_inputs(ctx, "X", "Y@GRAD");
}

// X and the gradient of the norm's output, or of the relu's output if there is
// no sum. Their elements are in the same order.
std::pair<tensor, tensor> images_with_gradient(kernel_context& ctx) {
  auto both = held_with_gradient(ctx);
  require_type("X", both.first.type(), dtype::float32);
  require_type("Y@GRAD", both.second.type(), dtype::float32);
  require_shape("Y@GRAD", both.second.dims(), both.first.dims());
  return both;
}

// Statistics of the whole batch.
struct batch_moments {
  double count = 0.0; // elements per channel
  floats mean;
  floats variance;

  bool single() const { return count <= 1.0; }
};

tensor moments_input(const kernel_context& ctx) {
  tensor value = float_input(ctx, "Moments");
  if (value.dims().rank() != 2 || value.dims()[1] % 2 != 1)
    throw_shape("Moments", value.dims(), "expected [devices, 1 + 2 channels]");
  return value;
}

double count_of(const tensor& moments) {
  double count = 0.0;
  for (std::int64_t d = 0; d < moments.dims()[0]; ++d)
    count += static_cast<double>(moments.data<float>()[d * moments.dims()[1]]);
  return count;
}

// Source: Chan, Golub and LeVeque, 1979, for any number of parts. Devices are
// combined one after the other, in double.
batch_moments combine(const tensor& moments) {
  const std::int64_t devices = moments.dims()[0];
  const std::int64_t width = moments.dims()[1];
  const std::int64_t channels = width / 2;
  batch_moments whole{count_of(moments),
                      floats(static_cast<std::size_t>(channels)),
                      floats(static_cast<std::size_t>(channels))};
  const auto sum = [&](auto term) {
    double total = 0.0;
    for (std::int64_t d = 0; d < devices; ++d) {
      const float* row = moments.data<float>() + d * width;
      total += static_cast<double>(row[0]) * term(row);
    }
    return total / whole.count;
  };
  for (std::int64_t c = 0; c < channels && whole.count > 0.0; ++c) {
    const double mean =
      sum([&](const float* row) { return static_cast<double>(row[1 + c]); });
    const double variance = sum([&](const float* row) {
      const double off = static_cast<double>(row[1 + c]) - mean;
      return static_cast<double>(row[1 + channels + c]) + off * off;
    });
    whole.mean[static_cast<std::size_t>(c)] = static_cast<float>(mean);
    whole.variance[static_cast<std::size_t>(c)] = static_cast<float>(variance);
  }
  return whole;
}

void write(kernel_context& ctx, std::string_view slot, const floats& values) {
  if (!ctx.has_output(slot))
    return;
  const auto n = static_cast<std::int64_t>(values.size());
  tensor out = float_output(ctx, slot, {n});
  copy(out.data<float>(), values.data(), n);
}

floats inverse_deviation(const kernel_context& ctx,
                         const batch_moments& whole) {
  const float epsilon = ctx.attributes().get_float("epsilon", 1e-5f);
  floats inverse(whole.variance.size());
  for (std::size_t c = 0; c < inverse.size(); ++c)
    inverse[c] = 1.0f / std::sqrt(whole.variance[c] + epsilon);
  return inverse;
}

// running = momentum running + (1 - momentum) batch. A single element has no
// variance: both statistics stay.
void move(kernel_context& ctx, std::string_view slot, std::string_view out_slot,
          const floats& batch, bool single) {
  if (!ctx.has_output(out_slot))
    return;
  const float momentum = ctx.attributes().get_float("momentum", 0.9f);
  const tensor running =
    vector_input(ctx, slot, static_cast<std::int64_t>(batch.size()));
  tensor out = float_output(ctx, out_slot, running.dims());
  scale_add(out.data<float>(), running.data<float>(), single ? 1.0f : momentum,
            0.0f, out.numel());
  if (!single)
    accumulate(out.data<float>(), batch.data(), 1.0f - momentum, out.numel());
}

void write_passed(kernel_context& ctx, const tensor& x) {
  if (has_relu(ctx))
    return write_relu(ctx, x);
  tensor y = output_like(ctx, "Y", x);
  copy_stored(results_of(y), values_of(x), x.numel());
}

void write_normalized(kernel_context& ctx, const channel_view& v,
                      const tensor& x, const block_norm& norm) {
  if (has_relu(ctx))
    return write_affine_relu(ctx, v, x, norm);
  tensor y = output_like(ctx, "Y", x);
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    const auto at = v.at(0, c);
    channel_affine(part, results_of(y) + at, values_of(x) + at, norm.mean + c,
                   norm.factor + c, norm.bias + c);
  });
}

// Whether dY counts only where Y is positive and is not masked yet.
bool masks_gradient(const kernel_context& ctx) {
  return has_relu(ctx) && !ctx.has_input("Y");
}

void sum_gradient(kernel_context& ctx, const channel_view& v, stored_values x,
                  stored_values dy, const float* mean, float* dot,
                  float* total) {
  if (masks_gradient(ctx))
    return relu_gradient_sums(ctx, v, x, dy, dot, total);
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    const auto at = v.at(0, c);
    channel_gradient_sums(part, x + at, dy + at, mean + c, dot + c, total + c);
  });
}

void combine_gradient(kernel_context& ctx, const channel_view& v,
                      stored_results dx, stored_values dy, stored_values x,
                      const block_factors& with) {
  if (masks_gradient(ctx))
    return relu_combine(ctx, v, dx, dy, x, with);
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    const auto at = v.at(0, c);
    channel_combine(part, dx + at, dy + at, x + at, with.mean + c,
                    with.dy_factor + c, with.x_factor + c, with.offset + c);
  });
}

void pass_gradient(kernel_context& ctx, tensor& dx, const tensor& x,
                   const tensor& dy) {
  const tensor passed =
    masks_gradient(ctx) ? gradient_behind_relu(ctx, x, dy) : dy;
  copy_stored(results_of(dx), values_of(passed), dx.numel());
}

} // namespace

void run_sync_batch_norm_moments(kernel_context& ctx) {
  const tensor x = images(ctx);
  const channel_view v = view_of(ctx, x);
  const std::int64_t width = 1 + 2 * v.channels;
  tensor moments = float_output(ctx, "Moments", {ctx.step().replicas, width});
  fill(moments.data<float>(), moments.numel(), 0.0f);
  if (v.samples * v.pixels == 0)
    return;
  float* row = moments.data<float>() + ctx.step().replica * width;
  row[0] = static_cast<float>(v.samples * v.pixels);
  float* mean = row + 1;
  float* variance = mean + v.channels;
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t c) {
    channel_moments(part, values_of(x) + v.at(0, c), mean + c, variance + c);
  });
}

void run_sync_batch_norm_normalize(kernel_context& ctx) {
  const tensor x = images(ctx);
  const channel_view v = view_of(ctx, x);
  const tensor scale = vector_input(ctx, "Scale", v.channels);
  const tensor bias = vector_input(ctx, "Bias", v.channels);
  const auto whole = combine(moments_input(ctx));
  if (whole.single()) {
    write_passed(ctx, x);
    write(ctx, "SavedMean", floats(whole.mean.size()));
    return write(ctx, "SavedVariance", floats(whole.mean.size()));
  }
  const floats inverse = inverse_deviation(ctx, whole);
  floats factor(inverse.size());
  multiply(factor.data(), scale.data<float>(), inverse.data(), v.channels);
  write_normalized(ctx, v, x,
                   {whole.mean.data(), factor.data(), bias.data<float>()});
  write(ctx, "SavedMean", whole.mean);
  write(ctx, "SavedVariance", inverse);
}

void run_sync_batch_norm_running(kernel_context& ctx) {
  const auto whole = combine(moments_input(ctx));
  move(ctx, "Mean", "MeanOut", whole.mean, whole.single());
  move(ctx, "Variance", "VarianceOut", whole.variance, whole.single());
}

// Sums: of dY (X - mean), then of dY.
void run_sync_batch_norm_grad_sums(kernel_context& ctx) {
  const auto [x, dy] = images_with_gradient(ctx);
  const channel_view v = view_of(ctx, x);
  const tensor mean = vector_input(ctx, "SavedMean", v.channels);
  const tensor inverse = vector_input(ctx, "SavedVariance", v.channels);
  tensor sums = float_output(ctx, "Sums", {2 * v.channels});
  float* dot = sums.data<float>();
  float* total = dot + v.channels;
  fill(dot, sums.numel(), 0.0f);
  if (count_of(moments_input(ctx)) > 1.0)
    sum_gradient(ctx, v, values_of(x), values_of(dy), mean.data<float>(), dot,
                 total);
  if (ctx.has_output("Scale@GRAD"))
    multiply(float_output(ctx, "Scale@GRAD", {v.channels}).data<float>(), dot,
             inverse.data<float>(), v.channels);
  if (ctx.has_output("Bias@GRAD"))
    copy(float_output(ctx, "Bias@GRAD", {v.channels}).data<float>(), total,
         v.channels);
}

// dX = scale inv_std (dY - mean(dY) - xhat mean(dY xhat)) over all devices.
void run_sync_batch_norm_grad_apply(kernel_context& ctx) {
  const auto [x, dy] = images_with_gradient(ctx);
  const channel_view v = view_of(ctx, x);
  const tensor scale = vector_input(ctx, "Scale", v.channels);
  const tensor mean = vector_input(ctx, "SavedMean", v.channels);
  const tensor inverse = vector_input(ctx, "SavedVariance", v.channels);
  const tensor sums = vector_input(ctx, "Sums", 2 * v.channels);
  const double count = count_of(moments_input(ctx));
  tensor dx = output_like(ctx, "X@GRAD", x);
  if (count <= 1.0)
    return pass_gradient(ctx, dx, x, dy);
  const auto channels = static_cast<std::size_t>(v.channels);
  floats dy_factor(channels), x_factor(channels), offset(channels);
  const auto share = static_cast<float>(1.0 / count);
  for (std::size_t c = 0; c < channels; ++c) {
    const float inv = inverse.data<float>()[c];
    dy_factor[c] = scale.data<float>()[c] * inv;
    x_factor[c] = -dy_factor[c] * sums.data<float>()[c] * inv * inv * share;
    offset[c] = -dy_factor[c] * sums.data<float>()[channels + c] * share;
  }
  combine_gradient(
    ctx, v, results_of(dx), values_of(dy), values_of(x),
    {mean.data<float>(), dy_factor.data(), x_factor.data(), offset.data()});
}

} // namespace troupe::cpu
