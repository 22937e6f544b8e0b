// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>

#include <string>
#include <string_view>

namespace troupe::cuda {

namespace {

/// A float32 input with one element per channel or column.
tensor vector_input(const kernel_context& ctx, std::string_view slot,
                    std::int64_t count) {
  auto value = float_input(ctx, slot);
  if (value.numel() != count)
    require_shape(slot, value.dims(), {count});
  return value;
}

/// The same for an input that may be missing.
tensor optional_vector(const kernel_context& ctx, std::string_view slot,
                       std::int64_t count) {
  return ctx.has_input(slot) ? vector_input(ctx, slot, count) : tensor{};
}
const float* data_or_null(const tensor& value) {
  return value ? value.data<float>() : nullptr;
}

/// A float32 output with one element per channel; memory of its own if the op
/// does not have it.
tensor vector_output(kernel_context& ctx, std::string_view slot,
                     std::int64_t count) {
  return ctx.has_output(slot) ? float_output(ctx, slot, {count})
                              : ctx.scratch(count);
}

launch_shape blocks_of_threads(std::int64_t blocks) {
  return {static_cast<std::uint32_t>(blocks), most_threads};
}

// -- batch_norm ---------------------------------------------------------------

// In Paddle's slots, SavedVariance is the inverse standard deviation.
class batch_norm_base : public kernel {
public:
  batch_norm_base(const attribute_map& attributes, bool fixed_in_test)
    : momentum_(attributes.get_float("momentum", 0.9f)),
      epsilon_(attributes.get_float("epsilon", 1e-5f)),
      fixed_((attributes.get_bool("is_test", false) && fixed_in_test)
             || attributes.get_bool("use_global_stats", false)),
      channels_last_(has_channels_last(attributes, "data_layout")) {}

protected:
  channel_layout layout_of(const shape& x) const {
    const auto rank = x.rank();
    if (rank < 2)
      throw_shape("X", x, "expected [N, C, ...] or [N, ..., C]");
    if (channels_last_)
      return {x.numel(0, rank - 1), x[rank - 1], 1};
    return {x[0], x[1], x.numel(2, rank)};
  }
  void invert(cuda_stream& queue, const tensor& variance, tensor& to) const {
    queue.run_for_each<invert_variance>(
      to.numel(),
      {variance.data<float>(), to.data<float>(), to.numel(), epsilon_});
  }

  float momentum_;
  float epsilon_;
  bool fixed_; // statistics are given, not the batch's

private:
  bool channels_last_;
};

class batch_norm_kernel final : public batch_norm_base {
public:
  explicit batch_norm_kernel(const attribute_map& attributes)
    : batch_norm_base(attributes,
                      !attributes.get_bool("trainable_statistics", false)) {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X");
    const auto layout = layout_of(x.dims());
    const auto mean = vector_input(ctx, "Mean", layout.channels);
    const auto variance = vector_input(ctx, "Variance", layout.channels);
    if (ctx.has_output("ReserveSpace")) // other libraries' scratch
      float_output(ctx, "ReserveSpace", {0});
    if (fixed_)
      use_given(ctx, layout, x, mean, variance);
    else if (layout.per_channel() > 1)
      train(ctx, layout, x, mean, variance);
    else
      pass_through(ctx, layout, x, mean, variance);
  }

private:
  void train(kernel_context& ctx, const channel_layout& layout, const tensor& x,
             const tensor& mean, const tensor& variance) const {
    const auto n = layout.channels;
    auto batch_mean = vector_output(ctx, "SavedMean", n);
    auto inverse = vector_output(ctx, "SavedVariance", n);
    auto mean_out = vector_output(ctx, "MeanOut", n);
    auto variance_out = vector_output(ctx, "VarianceOut", n);
    stream_of(ctx.queue())
      .run<batch_statistics>(blocks_of_threads(n),
                             {x.data<float>(), mean.data<float>(),
                              variance.data<float>(), batch_mean.data<float>(),
                              inverse.data<float>(), mean_out.data<float>(),
                              variance_out.data<float>(), momentum_, epsilon_,
                              layout});
    normalize(ctx, layout, x, batch_mean, inverse);
  }

  void use_given(kernel_context& ctx, const channel_layout& layout,
                 const tensor& x, const tensor& mean,
                 const tensor& variance) const {
    auto inverse = vector_output(ctx, "SavedVariance", layout.channels);
    invert(stream_of(ctx.queue()), variance, inverse);
    normalize(ctx, layout, x, mean, inverse);
    pass(ctx, "SavedMean", mean);
    pass(ctx, "MeanOut", mean);
    pass(ctx, "VarianceOut", variance);
  }

  // One element per channel has no variance: as in Paddle, X is passed through,
  // zeros are saved and the running statistics stay.
  static void pass_through(kernel_context& ctx, const channel_layout& layout,
                           const tensor& x, const tensor& mean,
                           const tensor& variance) {
    auto& queue = stream_of(ctx.queue());
    auto y = float_output(ctx, "Y", x.dims());
    queue_copy(queue, x, y);
    pass(ctx, "MeanOut", mean);
    pass(ctx, "VarianceOut", variance);
    for (auto slot : {"SavedMean", "SavedVariance"}) {
      auto saved = vector_output(ctx, slot, layout.channels);
      queue_fill(queue, saved.data<float>(), layout.channels, 0);
    }
  }

  static void pass(kernel_context& ctx, const char* slot, const tensor& value) {
    if (!ctx.has_output(slot))
      return;
    auto out = float_output(ctx, slot, {value.numel()});
    queue_copy(stream_of(ctx.queue()), value, out);
  }

  static void normalize(kernel_context& ctx, const channel_layout& layout,
                        const tensor& x, const tensor& mean,
                        const tensor& inverse) {
    const auto scale = optional_vector(ctx, "Scale", layout.channels);
    const auto bias = optional_vector(ctx, "Bias", layout.channels);
    auto y = float_output(ctx, "Y", x.dims());
    stream_of(ctx.queue())
      .run_for_each<normalize_channels>(
        x.numel(),
        {x.data<float>(), mean.data<float>(), inverse.data<float>(),
         data_or_null(scale), data_or_null(bias), y.data<float>(), layout});
  }
};

class batch_norm_grad_kernel final : public batch_norm_base {
public:
  explicit batch_norm_grad_kernel(const attribute_map& attributes)
    : batch_norm_base(attributes, true) {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X"), dy = float_input(ctx, "Y@GRAD");
    require_shape("Y@GRAD", dy.dims(), x.dims());
    const auto layout = layout_of(x.dims());
    const auto n = layout.channels;
    const auto scale = optional_vector(ctx, "Scale", n);
    const auto mean = vector_input(ctx, statistic(ctx, "Mean"), n);
    const auto inverse = inverse_input(ctx, n);
    auto dscale = vector_output(ctx, "Scale@GRAD", n);
    auto dbias = vector_output(ctx, "Bias@GRAD", n);
    auto& queue = stream_of(ctx.queue());
    if (!fixed_ && layout.per_channel() <= 1) {
      queue_fill(queue, dscale.data<float>(), n, 0);
      queue_fill(queue, dbias.data<float>(), n, 0);
      if (ctx.has_output("X@GRAD")) {
        auto dx = float_output(ctx, "X@GRAD", x.dims());
        queue_copy(queue, dy, dx);
      }
      return;
    }
    queue.run<norm_parameter_gradients>(
      blocks_of_threads(n),
      {x.data<float>(), dy.data<float>(), mean.data<float>(),
       inverse.data<float>(), dscale.data<float>(), dbias.data<float>(), layout,
       false});
    if (!ctx.has_output("X@GRAD"))
      return;
    auto dx = float_output(ctx, "X@GRAD", x.dims());
    const float share =
      fixed_ ? 0.0f : 1.0f / static_cast<float>(layout.per_channel());
    queue.run_for_each<batch_norm_input_gradient>(
      x.numel(),
      {x.data<float>(), dy.data<float>(), mean.data<float>(),
       inverse.data<float>(), data_or_null(scale), dscale.data<float>(),
       dbias.data<float>(), dx.data<float>(), share, layout});
  }

private:
  // The slot of a statistic. The batch's is what the forward pass saved. A
  // given one is an input; some programs list it as an output of the forward
  // op.
  std::string statistic(const kernel_context& ctx, const char* name) const {
    if (!fixed_)
      return std::string("Saved") + name;
    return ctx.has_input(name) ? name : std::string(name) + "Out";
  }

  tensor inverse_input(const kernel_context& ctx, std::int64_t n) const {
    auto variance = vector_input(ctx, statistic(ctx, "Variance"), n);
    if (!fixed_)
      return variance;
    auto inverse = ctx.scratch(n);
    invert(stream_of(ctx.queue()), variance, inverse);
    return inverse;
  }
};

// -- layer_norm ---------------------------------------------------------------

// X is seen as [rows, width].
class layer_norm_base : public kernel {
public:
  explicit layer_norm_base(const attribute_map& attributes)
    : axis_(attributes.get_int("begin_norm_axis", 1)),
      epsilon_(attributes.get_float("epsilon", 1e-5f)) {}

protected:
  /// The number of extents before the axis.
  std::size_t split_of(const shape& x) const {
    if (axis_ < 1 || axis_ >= static_cast<std::int64_t>(x.rank()))
      throw_shape(
        "X", x, "cannot be split at begin_norm_axis " + std::to_string(axis_));
    return static_cast<std::size_t>(axis_);
  }

  std::int64_t axis_;
  float epsilon_;
};

class layer_norm_kernel final : public layer_norm_base {
public:
  using layer_norm_base::layer_norm_base;

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X");
    const auto split = split_of(x.dims());
    const auto width = x.dims().numel(split, x.dims().rank());
    const shape statistics(x.dims().dims().first(split));
    const auto scale = optional_vector(ctx, "Scale", width);
    const auto bias = optional_vector(ctx, "Bias", width);
    auto y = float_output(ctx, "Y", x.dims());
    auto mean = statistic(ctx, "Mean", statistics);
    auto variance = statistic(ctx, "Variance", statistics);
    stream_of(ctx.queue())
      .run<normalize_rows>(blocks_of_threads(statistics.numel()),
                           {x.data<float>(), data_or_null(scale),
                            data_or_null(bias), y.data<float>(),
                            mean.data<float>(), variance.data<float>(), width,
                            epsilon_});
  }

private:
  static tensor statistic(kernel_context& ctx, const char* slot,
                          const shape& dims) {
    return ctx.has_output(slot) ? float_output(ctx, slot, dims)
                                : ctx.scratch(dims.numel());
  }
};

class layer_norm_grad_kernel final : public layer_norm_base {
public:
  using layer_norm_base::layer_norm_base;

  // Parameters come first: X@GRAD may overwrite X or Y@GRAD.
  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X"), dy = float_input(ctx, "Y@GRAD");
    const auto mean = float_input(ctx, "Mean");
    const auto variance = float_input(ctx, "Variance");
    require_shape("Y@GRAD", dy.dims(), x.dims());
    const auto split = split_of(x.dims());
    const auto rows = x.dims().numel(0, split);
    const auto width = x.dims().numel(split, x.dims().rank());
    if (mean.numel() != rows || variance.numel() != rows)
      throw_shapes("Mean", mean.dims(), "Variance", variance.dims(),
                   "expected one value per row");
    auto& queue = stream_of(ctx.queue());
    auto inverse = ctx.scratch(rows);
    queue.run_for_each<invert_variance>(
      rows, {variance.data<float>(), inverse.data<float>(), rows, epsilon_});
    if (ctx.has_output("Scale@GRAD") || ctx.has_output("Bias@GRAD")) {
      auto dscale = vector_output(ctx, "Scale@GRAD", width);
      auto dbias = vector_output(ctx, "Bias@GRAD", width);
      queue.run<norm_parameter_gradients>(blocks_of_threads(width),
                                          {x.data<float>(),
                                           dy.data<float>(),
                                           mean.data<float>(),
                                           inverse.data<float>(),
                                           dscale.data<float>(),
                                           dbias.data<float>(),
                                           {rows, width, 1},
                                           true});
    }
    if (!ctx.has_output("X@GRAD"))
      return;
    const auto scale = optional_vector(ctx, "Scale", width);
    auto dx = float_output(ctx, "X@GRAD", x.dims());
    queue.run<layer_norm_input_gradient>(
      blocks_of_threads(width > 0 ? rows : 0),
      {x.data<float>(), dy.data<float>(), mean.data<float>(),
       inverse.data<float>(), data_or_null(scale), dx.data<float>(), width});
  }
};

} // namespace

std::unique_ptr<kernel> make_batch_norm(const attribute_map& attributes) {
  return std::make_unique<batch_norm_kernel>(attributes);
}

std::unique_ptr<kernel> make_batch_norm_grad(const attribute_map& attributes) {
  return std::make_unique<batch_norm_grad_kernel>(attributes);
}

std::unique_ptr<kernel> make_layer_norm(const attribute_map& attributes) {
  return std::make_unique<layer_norm_kernel>(attributes);
}

std::unique_ptr<kernel> make_layer_norm_grad(const attribute_map& attributes) {
  return std::make_unique<layer_norm_grad_kernel>(attributes);
}

} // namespace troupe::cuda
