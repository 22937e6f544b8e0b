// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/conv/filter_blocks.hpp>
#include <troupe/kernels/cpu/conv/parallel_convolution.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/layout/image_layout.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

// Input [N, C, H, W] or [N, H, W, C], Filter [O, C / groups, KH, KW].
class conv_base : public kernel {
public:
  explicit conv_base(const attribute_map& attributes)
    : attributes_(attributes), groups_(attributes.get_int("groups", 1)),
      channels_last_(has_channels_last(attributes, "data_format")) {}

protected:
  const conv_problem& problem(const shape& input, const shape& filter) {
    require_rank("Input", input, 4);
    require_rank("Filter", filter, 4);
    const shape in = channels_second(input, channels_last_);
    if (known_ && in == problem_.in && filter == problem_.filter)
      return problem_;
    require_shapes(in, filter);
    const auto axes =
      read_window(attributes_, {in[2], in[3]}, {filter[2], filter[3]});
    problem_ = {in,
                filter,
                {in[0], filter[0], axes[0].positions(), axes[1].positions()},
                groups_,
                axes,
                channels_last_};
    known_ = true;
    return problem_;
  }

  // An image in whatever layout it has.
  tensor image_input(const kernel_context& ctx, std::string_view slot) const {
    if (channels_last_)
      return float_input(ctx, slot);
    const tensor x = held_input(ctx, slot);
    require_type(slot, x.type(), dtype::float32);
    return x;
  }

  // The filter in its own layout: in blocks or plain.
  tensor filter(const kernel_context& ctx) const {
    return groups_ == 1 ? filter_input(ctx, "Filter")
                        : float_input(ctx, "Filter");
  }

  shape output_dims() const {
    return channels_in_place(problem_.out, channels_last_);
  }

private:
  void require_shapes(const shape& in, const shape& filter) const {
    if (groups_ < 1 || groups_ > in[1] || in[1] != filter[1] * groups_
        || filter[0] % groups_ != 0)
      throw_shapes("Input", in, "Filter", filter,
                   "do not go together with groups " + std::to_string(groups_));
    if (filter.numel() == 0)
      throw_shape("Filter", filter, "is empty");
  }

  attribute_map attributes_;
  std::int64_t groups_;
  bool channels_last_;
  conv_problem problem_;
  bool known_ = false;
};

class conv_kernel final : public conv_base {
public:
  conv_kernel(const attribute_map& attributes, const kernel_options& options)
    : conv_base(attributes), forward_(conv_direction::forward, options) {}

  void run(kernel_context& ctx) override {
    const tensor x = image_input(ctx, "Input");
    const tensor w = filter(ctx);
    conv_problem p = problem(x.dims(), w.dims());
    p.in_format = format_of(x);
    p.filter_in_blocks = lies_in_filter_blocks(w);
    if (p.out.numel() == 0) {
      float_output(ctx, "Output", output_dims());
      return;
    }
    format_.set(p.out, forward_.prepare(p, ctx.workers()));
    tensor out = stored_output(ctx, "Output", output_dims(), dtype::float32,
                               format_.get());
    forward_.run(ctx, values_of(x), w.data<float>(), results_of(out));
    if (ctx.has_input("Bias"))
      add_bias(ctx, p, out);
  }

private:
  static void add_bias(kernel_context& ctx, const conv_problem& p,
                       tensor& out) {
    const tensor bias = float_input(ctx, "Bias");
    if (bias.numel() != p.out[1])
      throw_shapes("Bias", bias.dims(), "Output", p.out,
                   "expected one value per channel");
    const auto channel_stride = p.channels_last ? p.out[1] : block_of(out);
    if (channel_stride > 0)
      add_to_channels(results_of(out), values_of(out), bias.data<float>(),
                      p.out, channel_stride);
    else
      add_to_planes(out.data<float>(), bias.data<float>(), p.out);
  }

  static void add_to_planes(float* out, const float* bias, const shape& dims) {
    const std::int64_t pixels = dims.numel(2, 4);
    for (std::int64_t i = 0; i < dims.numel(0, 2); ++i, out += pixels)
      scale_add(out, out, 1.0f, bias[i % dims[1]], pixels);
  }

  kept_format format_;
  parallel_convolution forward_;
};

class conv_grad_kernel final : public conv_base {
public:
  conv_grad_kernel(const attribute_map& attributes,
                   const kernel_options& options)
    : conv_base(attributes), data_(conv_direction::input_gradient, options),
      weights_(conv_direction::filter_gradient, options),
      may_make_blocks_(attributes.get_bool("filter_in_blocks", false)) {}

  void run(kernel_context& ctx) override {
    const tensor x = image_input(ctx, "Input");
    const tensor w = filter(ctx);
    const tensor dout = image_input(ctx, "Output@GRAD");
    conv_problem p = problem(x.dims(), w.dims());
    require_shape("Output@GRAD", dout.dims(), output_dims());
    p.in_format = format_of(x);
    p.out_format = format_of(dout);
    if (ctx.has_output("Input@GRAD"))
      input_gradient(ctx, p, dout, w, x);
    if (ctx.has_output("Filter@GRAD"))
      filter_gradient(ctx, p, dout, x);
  }

private:
  // Input@GRAD gets the layout of Input.
  void input_gradient(kernel_context& ctx, const conv_problem& p,
                      const tensor& dout, const tensor& w, const tensor& x) {
    tensor dx = output_like(ctx, "Input@GRAD", x);
    if (dx.numel() == 0)
      return;
    conv_problem lying = p;
    lying.filter_in_blocks = lies_in_filter_blocks(w);
    data_.prepare(lying, ctx.workers());
    data_.run(ctx, values_of(dout), w.data<float>(), results_of(dx));
  }

  void filter_gradient(kernel_context& ctx, const conv_problem& p,
                       const tensor& dout, const tensor& x) {
    if (x.numel() == 0) {
      tensor none = float_output(ctx, "Filter@GRAD", p.filter);
      return fill(none.data<float>(), none.numel(), 0.0f);
    }
    prepare_weights(p, ctx.workers());
    tensor dw = stored_output(ctx, "Filter@GRAD", p.filter, dtype::float32,
                              filter_layout_);
    weights_.run(ctx, values_of(x), values_of(dout), dw.data<float>());
  }

  // Asks for a gradient in blocks only if the chosen method produces one
  // directly. Plain images get a plain gradient: their forward pass may need a
  // plain filter.
  void prepare_weights(const conv_problem& p, std::size_t workers) {
    if (prepared_ && same_in_kernel(prepared_for_, p))
      return;
    prepared_ = false;
    conv_problem lying = p;
    lying.filter_in_blocks = may_make_blocks_ && p.in_format.block > 0
                             && p.groups == 1 && fits_filter_blocks(p.filter);
    weights_.prepare(lying, workers);
    if (lying.filter_in_blocks && !weights_.makes_filter_blocks()) {
      lying.filter_in_blocks = false;
      weights_.prepare(lying, workers);
    }
    filter_layout_ = lying.filter_in_blocks ? filter_blocks(p.filter) : nullptr;
    prepared_for_ = p;
    prepared_ = true;
  }

  parallel_convolution data_;
  parallel_convolution weights_;
  bool may_make_blocks_;
  bool prepared_ = false; // whether `weights_` is
  conv_problem prepared_for_;
  std::shared_ptr<const layout> filter_layout_; // null: plain
};

} // namespace

std::unique_ptr<kernel> make_conv2d(const attribute_map& attributes,
                                    const kernel_options& options) {
  return std::make_unique<conv_kernel>(attributes, options);
}

std::unique_ptr<kernel> make_conv2d_grad(const attribute_map& attributes,
                                         const kernel_options& options) {
  return std::make_unique<conv_grad_kernel>(attributes, options);
}

} // namespace troupe::cpu
