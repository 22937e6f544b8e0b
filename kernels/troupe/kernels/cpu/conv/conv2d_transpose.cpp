// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/layout/image_layout.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// Input [N, C, H, W] or [N, H, W, C], Filter [C, O / groups, KH, KW]. The op is
// the input gradient of a convolution with the same filter that maps Output to
// Input.
class transpose_base : public kernel {
public:
  explicit transpose_base(const attribute_map& attributes)
    : attributes_(attributes), groups_(attributes.get_int("groups", 1)),
      channels_last_(has_channels_last(attributes, "data_format")),
      more_(attributes.get_ints("output_padding", {})),
      size_(attributes.get_ints("output_size", {})) {}

protected:
  // That convolution: its `in` is Output, its `out` is Input.
  const conv_problem& problem(const shape& input, const shape& filter) {
    require_rank("Input", input, 4);
    require_rank("Filter", filter, 4);
    const shape small = channels_second(input, channels_last_);
    if (known_ && small == problem_.out && filter == problem_.filter)
      return problem_;
    if (groups_ < 1 || small[1] != filter[0] || filter[0] % groups_ != 0
        || filter.numel() == 0)
      throw_shapes("Input", input, "Filter", filter,
                   "do not go together with groups " + std::to_string(groups_));
    auto axes =
      read_window(attributes_, {small[2], small[3]}, {filter[2], filter[3]});
    shape large{small[0], filter[1] * groups_, 0, 0};
    for (std::size_t i = 0; i < 2; ++i)
      large[i + 2] = axes[i].length = length_of(axes[i], i);
    problem_ = {large, filter, small, groups_, axes, channels_last_};
    known_ = true;
    return problem_;
  }

  shape output_dims() const {
    return channels_in_place(problem_.in, channels_last_);
  }

private:
  // The length of Output along an axis: the shortest that the filter covers,
  // plus less than one stride.
  std::int64_t length_of(const window_axis& a, std::size_t axis) const {
    const std::int64_t shortest = (a.length - 1) * a.stride - a.before - a.after
                                  + a.dilation * (a.extent - 1) + 1;
    std::int64_t length = shortest;
    if (size_.size() > axis)
      length = size_[axis];
    // clamped, so that the sum fits; the check still fails
    else if (more_.size() > axis)
      length += std::clamp<std::int64_t>(more_[axis], -1, a.stride);
    if (length < 1 || length < shortest || length >= shortest + a.stride)
      throw error(errc::invalid_argument,
                  "an output of " + std::to_string(length)
                    + " pixels, where there can be " + std::to_string(shortest)
                    + " to " + std::to_string(shortest + a.stride - 1));
    return length;
  }

  attribute_map attributes_;
  std::int64_t groups_;
  bool channels_last_;
  std::vector<std::int64_t> more_;
  std::vector<std::int64_t> size_;
  conv_problem problem_;
  bool known_ = false;
};

class transpose_kernel final : public transpose_base {
public:
  transpose_kernel(const attribute_map& attributes,
                   const kernel_options& options)
    : transpose_base(attributes),
      data_(conv_direction::input_gradient, options) {}

  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "Input");
    const tensor w = float_input(ctx, "Filter");
    const auto& p = problem(x.dims(), w.dims());
    tensor out = float_output(ctx, "Output", output_dims());
    if (out.numel() == 0)
      return;
    data_.prepare(p);
    data_.run(ctx, x.data<float>(), w.data<float>(), out.data<float>());
  }

private:
  convolution data_;
};

class transpose_grad_kernel final : public transpose_base {
public:
  transpose_grad_kernel(const attribute_map& attributes,
                        const kernel_options& options)
    : transpose_base(attributes), forward_(conv_direction::forward, options),
      weights_(conv_direction::filter_gradient, options) {}

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
    if (dims.numel() == 0) {
      float_output(ctx, "Input@GRAD", dims);
      return;
    }
    tensor dx = stored_output(ctx, "Input@GRAD", dims, dtype::float32,
                              channel_blocks(p.out, forward_.prepare(p)));
    forward_.run(ctx, dout.data<float>(), w.data<float>(), results_of(dx));
  }

  void filter_gradient(kernel_context& ctx, const conv_problem& p,
                       const tensor& dout, const tensor& x) {
    tensor dw = float_output(ctx, "Filter@GRAD", p.filter);
    if (x.numel() == 0)
      return fill(dw.data<float>(), dw.numel(), 0.0f);
    weights_.prepare(p);
    weights_.run(ctx, dout.data<float>(), x.data<float>(), dw.data<float>());
  }

  convolution forward_;
  convolution weights_;
};

} // namespace

std::unique_ptr<kernel> make_conv2d_transpose(const attribute_map& attributes,
                                              const kernel_options& options) {
  return std::make_unique<transpose_kernel>(attributes, options);
}

std::unique_ptr<kernel>
make_conv2d_transpose_grad(const attribute_map& attributes,
                           const kernel_options& options) {
  return std::make_unique<transpose_grad_kernel>(attributes, options);
}

} // namespace troupe::cpu
