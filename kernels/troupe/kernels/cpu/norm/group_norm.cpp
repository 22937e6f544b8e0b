// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/image_layout.hpp>
#include <troupe/kernels/cpu/norm/channel_statistics.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

using floats = std::vector<float>;

// X [N, C, pixels...], whose channels are normalized in groups.
struct groups_view {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t groups = 1;
  std::int64_t pixels = 1;

  std::int64_t planes() const { return samples * channels; }
  std::int64_t all_groups() const { return samples * groups; }
  std::int64_t planes_per_group() const { return channels / groups; }
  // The view in which each plane, or each group, is one channel.
  channel_view by_plane() const { return {1, planes(), pixels}; }
  channel_view by_group() const {
    return {1, all_groups(), planes_per_group() * pixels};
  }
  std::size_t group_of(std::int64_t plane) const {
    return static_cast<std::size_t>(plane / planes_per_group());
  }
};

// How group_norm and instance_norm differ. The latter has one group per channel
// and saves the inverse standard deviation.
struct norm_slots {
  const char* mean;
  const char* variance;
  bool inverse;
};

constexpr norm_slots group_slots{"Mean", "Variance", false};
constexpr norm_slots instance_slots{"SavedMean", "SavedVariance", true};

// Source: Wu and He, "Group normalization", 2018; Ulyanov, Vedaldi and
// Lempitsky, "Instance normalization", 2016.
class group_norm {
public:
  group_norm(kernel_context& ctx, const norm_slots& slots)
    : ctx_(ctx), slots_(slots),
      epsilon_(ctx.attributes().get_float("epsilon", 1e-5f)),
      channels_last_(!slots.inverse
                     && has_channels_last(ctx.attributes(), "data_layout")) {
    x_ = images("X");
    view_ = view_of(x_.dims());
  }

  void forward() {
    const auto count = static_cast<std::size_t>(view_.all_groups());
    mean_.resize(count);
    floats variance(count);
    if (x_.numel() > 0)
      channel_moments(view_.by_group(), x_.data<float>(), mean_.data(),
                      variance.data());
    invert(variance.data());
    save(slots_.mean, mean_);
    save(slots_.variance, slots_.inverse ? inverse_ : variance);
    const tensor scale = parameter("Scale", 1.0f);
    const tensor bias = parameter("Bias", 0.0f);
    const floats factor = per_plane([&](std::size_t group, std::size_t c) {
      return inverse_[group] * scale.data<float>()[c];
    });
    const floats shift = per_plane(
      [&](std::size_t, std::size_t c) { return bias.data<float>()[c]; });
    write_images("Y", [&](tensor& y) {
      channel_affine(view_.by_plane(), y.data<float>(), x_.data<float>(),
                     plane_means().data(), factor.data(), shift.data());
    });
  }

  void backward() {
    const tensor dy = images("Y@GRAD");
    require_shape("Y@GRAD", dy.dims(), x_.dims());
    read_statistics();
    floats dot(static_cast<std::size_t>(view_.planes()));
    floats total(dot.size());
    const floats means = plane_means();
    channel_gradient_sums(view_.by_plane(), x_.data<float>(), dy.data<float>(),
                          means.data(), dot.data(), total.data());
    if (ctx_.has_output("X@GRAD"))
      input_gradient(dy, means, dot, total);
    sum_samples("Scale@GRAD", [&](std::size_t plane, std::size_t group) {
      return dot[plane] * inverse_[group];
    });
    sum_samples("Bias@GRAD",
                [&](std::size_t plane, std::size_t) { return total[plane]; });
  }

private:
  groups_view view_of(const shape& x) const {
    const std::int64_t groups =
      slots_.inverse ? x[1] : ctx_.attributes().get_int("groups", 1);
    if (groups < 1 || groups > std::max<std::int64_t>(x[1], 1)
        || x[1] % groups != 0)
      throw_shape("X", x,
                  "has no channels for " + std::to_string(groups) + " groups");
    return {x[0], x[1], groups, x.numel(2, x.rank())};
  }

  // The input with its channels second, whatever the program's layout.
  tensor images(std::string_view slot) const {
    tensor x = float_input(ctx_, slot);
    if (x.dims().rank() < (channels_last_ ? 3U : 2U))
      throw_shape(slot, x.dims(), "expected [N, C, ...]");
    return channels_last_ ? with_channels_second(ctx_, x) : x;
  }

  template <class Write>
  void write_images(std::string_view slot, Write write) const {
    if (!channels_last_) {
      tensor out = float_output(ctx_, slot, x_.dims());
      return write(out);
    }
    tensor out = tensor::make(ctx_.on().memory(), x_.dims(), dtype::float32);
    write(out);
    ctx_.output_variable(slot).set(with_channels_last(ctx_, out));
  }

  tensor parameter(std::string_view slot, float otherwise) const {
    if (!ctx_.has_input(slot)) {
      tensor value = ctx_.scratch(view_.channels);
      fill(value.data<float>(), view_.channels, otherwise);
      return value;
    }
    tensor value = float_input(ctx_, slot);
    if (value.numel() != view_.channels)
      require_shape(slot, value.dims(), {view_.channels});
    return value;
  }

  void invert(const float* variance) {
    inverse_.resize(mean_.size());
    for (std::size_t i = 0; i < inverse_.size(); ++i)
      inverse_[i] = 1.0f / std::sqrt(variance[i] + epsilon_);
  }

  void save(std::string_view slot, const floats& values) const {
    if (!ctx_.has_output(slot))
      return;
    const shape dims = slots_.inverse ? shape{view_.all_groups()}
                                      : shape{view_.samples, view_.groups};
    tensor out = float_output(ctx_, slot, dims);
    copy(out.data<float>(), values.data(), out.numel());
  }

  tensor statistic(std::string_view slot) const {
    tensor value = float_input(ctx_, slot);
    if (value.numel() != view_.all_groups())
      require_shape(slot, value.dims(), {view_.all_groups()});
    return value;
  }

  void read_statistics() {
    const tensor mean = statistic(slots_.mean);
    const tensor variance = statistic(slots_.variance);
    const auto saved = variance.values<float>();
    mean_.assign(mean.values<float>().begin(), mean.values<float>().end());
    if (slots_.inverse)
      inverse_.assign(saved.begin(), saved.end());
    else
      invert(saved.data());
  }

  // One value per plane: value(group, channel).
  template <class Value>
  floats per_plane(Value value) const {
    floats all;
    for (std::int64_t plane = 0; plane < view_.planes(); ++plane)
      all.push_back(value(view_.group_of(plane),
                          static_cast<std::size_t>(plane % view_.channels)));
    return all;
  }

  floats plane_means() const {
    return per_plane(
      [this](std::size_t group, std::size_t) { return mean_[group]; });
  }

  // With g = dY scale, over each group:
  // dX = inv_std (g - mean(g) - xhat mean(g xhat)).
  // Paddle's group_norm omits mean(g) if there is no Scale.
  void input_gradient(const tensor& dy, const floats& means, const floats& dot,
                      const floats& total) const {
    const tensor scale = parameter("Scale", 1.0f);
    floats g_dot(mean_.size());
    floats g_total(mean_.size());
    for (std::int64_t plane = 0; plane < view_.planes(); ++plane) {
      const auto at = static_cast<std::size_t>(plane);
      const float s = scale.data<float>()[plane % view_.channels];
      g_dot[view_.group_of(plane)] += dot[at] * s;
      g_total[view_.group_of(plane)] += total[at] * s;
    }
    const float share =
      1.0f / static_cast<float>(view_.planes_per_group() * view_.pixels);
    const floats dy_factor = per_plane([&](std::size_t group, std::size_t c) {
      return inverse_[group] * scale.data<float>()[c];
    });
    const floats x_factor = per_plane([&](std::size_t group, std::size_t) {
      const float inv = inverse_[group];
      return -inv * inv * inv * g_dot[group] * share;
    });
    const float centred = slots_.inverse || ctx_.has_input("Scale") ? 1 : 0;
    const floats offset = per_plane([&](std::size_t group, std::size_t) {
      return -centred * inverse_[group] * g_total[group] * share;
    });
    write_images("X@GRAD", [&](tensor& dx) {
      channel_combine(view_.by_plane(), dx.data<float>(), dy.data<float>(),
                      x_.data<float>(), means.data(), dy_factor.data(),
                      x_factor.data(), offset.data());
    });
  }

  // For each channel, sums value(plane, group) over the samples.
  template <class Value>
  void sum_samples(std::string_view slot, Value value) const {
    if (!ctx_.has_output(slot))
      return;
    tensor out = float_output(ctx_, slot, {view_.channels});
    fill(out.data<float>(), out.numel(), 0.0f);
    for (std::int64_t plane = 0; plane < view_.planes(); ++plane)
      out.data<float>()[plane % view_.channels] +=
        value(static_cast<std::size_t>(plane), view_.group_of(plane));
  }

  kernel_context& ctx_;
  const norm_slots& slots_;
  float epsilon_;
  bool channels_last_;
  tensor x_;
  groups_view view_;
  floats mean_;
  floats inverse_;
};

} // namespace

void run_group_norm(kernel_context& ctx) {
  group_norm(ctx, group_slots).forward();
}

void run_group_norm_grad(kernel_context& ctx) {
  group_norm(ctx, group_slots).backward();
}

void run_instance_norm(kernel_context& ctx) {
  group_norm(ctx, instance_slots).forward();
}

void run_instance_norm_grad(kernel_context& ctx) {
  group_norm(ctx, instance_slots).backward();
}

} // namespace troupe::cpu
