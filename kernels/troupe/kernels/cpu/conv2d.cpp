// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/convolution.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/image_layout.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

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

  shape output_dims() const {
    return channels_in_place(problem_.out, channels_last_);
  }

private:
  void require_shapes(const shape& in, const shape& filter) const {
    if (groups_ < 1 || in[1] != filter[1] * groups_ || filter[0] % groups_ != 0)
      throw_shapes("Input", in, "Filter", filter,
                   "do not go together with groups " + std::to_string(groups_));
    if (filter.numel() == 0 || in[1] == 0)
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
  using conv_base::conv_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "Input");
    const tensor w = float_input(ctx, "Filter");
    const auto& p = problem(x.dims(), w.dims());
    tensor out = float_output(ctx, "Output", output_dims());
    if (out.numel() == 0)
      return;
    forward_.run(ctx, p, x.data<float>(), w.data<float>(), out.data<float>());
    if (ctx.has_input("Bias"))
      add_bias(ctx, p, out.data<float>());
  }

private:
  static void add_bias(kernel_context& ctx, const conv_problem& p, float* out) {
    const tensor bias = float_input(ctx, "Bias");
    const std::int64_t channels = p.out[1];
    const std::int64_t pixels = p.out.numel(2, 4);
    if (bias.numel() != channels)
      throw_shapes("Bias", bias.dims(), "Output", p.out,
                   "expected one value per channel");
    if (p.channels_last)
      for (std::int64_t i = 0; i < p.out[0] * pixels; ++i, out += channels)
        add(out, out, bias.data<float>(), channels);
    else
      for (std::int64_t i = 0; i < p.out[0] * channels; ++i, out += pixels)
        scale_add(out, out, 1.0f, bias.data<float>()[i % channels], pixels);
  }

  convolution forward_{conv_direction::forward};
};

class conv_grad_kernel final : public conv_base {
public:
  using conv_base::conv_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "Input");
    const tensor w = float_input(ctx, "Filter");
    const tensor dout = float_input(ctx, "Output@GRAD");
    const auto& p = problem(x.dims(), w.dims());
    require_shape("Output@GRAD", dout.dims(), output_dims());
    if (ctx.has_output("Input@GRAD"))
      input_gradient(ctx, p, dout, w, x.dims());
    if (ctx.has_output("Filter@GRAD"))
      filter_gradient(ctx, p, dout, x);
  }

private:
  void input_gradient(kernel_context& ctx, const conv_problem& p,
                      const tensor& dout, const tensor& w, const shape& dims) {
    tensor dx = float_output(ctx, "Input@GRAD", dims);
    if (dx.numel() > 0)
      data_.run(ctx, p, dout.data<float>(), w.data<float>(), dx.data<float>());
  }

  void filter_gradient(kernel_context& ctx, const conv_problem& p,
                       const tensor& dout, const tensor& x) {
    tensor dw = float_output(ctx, "Filter@GRAD", p.filter);
    if (x.numel() == 0)
      return fill(dw.data<float>(), dw.numel(), 0.0f);
    weights_.run(ctx, p, x.data<float>(), dout.data<float>(), dw.data<float>());
  }

  convolution data_{conv_direction::input_gradient};
  convolution weights_{conv_direction::filter_gradient};
};

} // namespace

std::unique_ptr<kernel> make_conv2d(const attribute_map& attributes) {
  return std::make_unique<conv_kernel>(attributes);
}

std::unique_ptr<kernel> make_conv2d_grad(const attribute_map& attributes) {
  return std::make_unique<conv_grad_kernel>(attributes);
}

} // namespace troupe::cpu
