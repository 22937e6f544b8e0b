// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/blocked_primitive.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/single_threaded.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>
#include <troupe/kernels/cpu/window.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

using dnnl::memory;

// Input [N, C, H, W], Filter [O, C / groups, KH, KW], Output [N, O, OH, OW].
struct conv_shape {
  shape in;
  shape filter;
  shape out;
};

// oneDNN's descriptions of a convolution: as Troupe lays tensors out, and as
// the primitive shall have them, which may leave the format to the library.
struct conv_descs {
  memory::desc src;
  memory::desc weights;
  memory::desc dst;
  memory::desc inner_src;
  memory::desc inner_weights;
  memory::desc inner_dst;
  memory::dims strides;
  memory::dims dilates; // 0: dense
  memory::dims pad_before;
  memory::dims pad_after;
};

memory::desc any_format(const memory::dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::any};
}

memory::desc plain_format(const memory::dims& dims) {
  return {dims, memory::data_type::f32,
          dims.size() == 5 ? memory::format_tag::goihw
                           : memory::format_tag::nchw};
}

memory::dims dims_of(const shape& s) {
  return {s.begin(), s.end()};
}

enum class conv_direction { forward, input_gradient, filter_gradient };

std::int64_t padded_to_block(std::int64_t channels) {
  return (channels + 15) / 16 * 16;
}

// Whether oneDNN's multiplication of unfolded plain tensors is faster than its
// blocked kernels with conversions before and after. Measured on AVX-512 with
// the shapes of bench/kernel_bench.cpp: pointwise convolutions gain 1.1 to 1.5
// times (but for tiny images, and filter gradients to fewer channels),
// gradients of images with a few channels 3 to 6 times, and channels that fill
// half of their blocks 1.2 times.
bool prefers_plain(conv_direction direction, const conv_shape& s) {
  const std::int64_t in = s.filter[1];
  const std::int64_t out = s.filter[0];
  const std::int64_t taps = s.filter[2] * s.filter[3];
  if (s.in[1] != in) // groups
    return false;
  const std::int64_t pixels = s.out.numel(2, 4);
  if (taps == 1 && s.in.numel(2, 4) == pixels)
    return direction == conv_direction::filter_gradient
             ? out >= in || pixels <= 14 * 14
             : pixels >= 14 * 14;
  if (in > 16 && out > 16
      && 2 * in * out < padded_to_block(in) * padded_to_block(out))
    return true;
  if (direction == conv_direction::input_gradient)
    return in <= 4;
  return direction == conv_direction::forward && in * taps <= 32 && out >= 16;
}

class conv_base : public kernel {
public:
  explicit conv_base(const attribute_map& attributes)
    : attributes_(attributes), groups_(attributes.get_int("groups", 1)) {
    const auto layout = attributes.get_string("data_format", "NCHW");
    if (layout != "NCHW" && layout != "AnyLayout")
      throw error(errc::invalid_argument,
                  "attribute data_format " + layout + " is not NCHW");
  }

protected:
  // True if shapes changed and primitives must be made anew.
  bool update(const shape& in, const shape& filter) {
    if (known_ && in == shape_.in && filter == shape_.filter)
      return false;
    require_shapes(in, filter);
    axes_ = read_window(attributes_, {in[2], in[3]}, {filter[2], filter[3]});
    shape_ = {in,
              filter,
              {in[0], filter[0], axes_[0].positions(), axes_[1].positions()}};
    known_ = true;
    return true;
  }

  const conv_shape& shapes() const noexcept { return shape_; }

  conv_descs descs(conv_direction direction) const {
    const memory::dims src = dims_of(shape_.in);
    const memory::dims weights = filter_dims();
    const memory::dims dst = dims_of(shape_.out);
    const auto pair = [this](auto get) {
      return memory::dims{get(axes_[0]), get(axes_[1])};
    };
    const auto inner =
      prefers_plain(direction, shape_) ? plain_format : any_format;
    return {plain_format(src),
            plain_format(weights),
            plain_format(dst),
            inner(src),
            inner(weights),
            inner(dst),
            pair([](const window_axis& a) { return a.stride; }),
            pair([](const window_axis& a) { return a.dilation - 1; }),
            pair([](const window_axis& a) { return a.before; }),
            pair([](const window_axis& a) { return a.after; })};
  }

  static dnnl::convolution_forward::primitive_desc
  forward_desc(const conv_descs& d) {
    return {{dnnl::prop_kind::forward_training,
             dnnl::algorithm::convolution_direct, d.inner_src, d.inner_weights,
             d.inner_dst, d.strides, d.dilates, d.pad_before, d.pad_after},
            user_scratchpad(),
            cpu_engine()};
  }

private:
  void require_shapes(const shape& in, const shape& filter) const {
    require_rank("Input", in, 4);
    require_rank("Filter", filter, 4);
    if (groups_ < 1 || in[1] != filter[1] * groups_ || filter[0] % groups_ != 0)
      throw_shapes("Input", in, "Filter", filter,
                   "do not go together with groups " + std::to_string(groups_));
    if (filter.numel() == 0 || in[1] == 0)
      throw_shape("Filter", filter, "is empty");
  }

  memory::dims filter_dims() const {
    const shape& f = shape_.filter;
    if (groups_ == 1)
      return dims_of(f);
    return {groups_, f[0] / groups_, f[1], f[2], f[3]};
  }

  attribute_map attributes_;
  std::int64_t groups_;
  conv_shape shape_;
  std::array<window_axis, 2> axes_;
  bool known_ = false;
};

// Runs `act`, turning the library's errors into Troupe's.
template <class Act>
void with_onednn(Act act) {
  try {
    ensure_single_threaded();
    act();
  } catch (const dnnl::error& failure) {
    throw error(errc::kernel_failure,
                std::string("oneDNN convolution: ") + failure.what());
  }
}

class conv_kernel final : public conv_base {
public:
  using conv_base::conv_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "Input");
    const tensor w = float_input(ctx, "Filter");
    if (update(x.dims(), w.dims()))
      ready_ = false;
    tensor out = float_output(ctx, "Output", shapes().out);
    if (out.numel() == 0)
      return;
    with_onednn([&] {
      if (!ready_)
        prepare();
      primitive_.run(ctx, x.data<float>(), w.data<float>(), out.data<float>());
    });
    if (ctx.has_input("Bias"))
      add_bias(ctx, out);
  }

private:
  void prepare() {
    const conv_descs d = descs(conv_direction::forward);
    const auto desc = forward_desc(d);
    primitive_ = {dnnl::convolution_forward(desc),
                  desc.scratchpad_desc(),
                  {{{DNNL_ARG_SRC, d.src, desc.src_desc()},
                    {DNNL_ARG_WEIGHTS, d.weights, desc.weights_desc()}}},
                  {DNNL_ARG_DST, d.dst, desc.dst_desc()}};
    ready_ = true;
  }

  static void add_bias(kernel_context& ctx, tensor& out) {
    const tensor bias = float_input(ctx, "Bias");
    const std::int64_t channels = out.dims()[1];
    const std::int64_t pixels = out.dims().numel(2, 4);
    if (bias.numel() != channels)
      throw_shapes("Bias", bias.dims(), "Output", out.dims(),
                   "expected one value per channel");
    float* plane = out.data<float>();
    for (std::int64_t i = 0; i < out.dims()[0] * channels; ++i) {
      scale_add(plane, plane, 1.0f, bias.data<float>()[i % channels], pixels);
      plane += pixels;
    }
  }

  blocked_primitive primitive_;
  bool ready_ = false;
};

class conv_grad_kernel final : public conv_base {
public:
  using conv_base::conv_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "Input");
    const tensor w = float_input(ctx, "Filter");
    const tensor dout = float_input(ctx, "Output@GRAD");
    if (update(x.dims(), w.dims()))
      data_ready_ = weights_ready_ = false;
    require_shape("Output@GRAD", dout.dims(), shapes().out);
    if (ctx.has_output("Input@GRAD"))
      input_gradient(ctx, dout, w);
    if (ctx.has_output("Filter@GRAD"))
      filter_gradient(ctx, dout, x);
  }

private:
  void input_gradient(kernel_context& ctx, const tensor& dout,
                      const tensor& w) {
    tensor dx = float_output(ctx, "Input@GRAD", shapes().in);
    if (dx.numel() == 0)
      return;
    with_onednn([&] {
      if (!data_ready_)
        prepare_data();
      data_.run(ctx, dout.data<float>(), w.data<float>(), dx.data<float>());
    });
  }

  void filter_gradient(kernel_context& ctx, const tensor& dout,
                       const tensor& x) {
    tensor dw = float_output(ctx, "Filter@GRAD", shapes().filter);
    if (x.numel() == 0)
      return fill(dw.data<float>(), dw.numel(), 0.0f);
    with_onednn([&] {
      if (!weights_ready_)
        prepare_weights();
      weights_.run(ctx, x.data<float>(), dout.data<float>(), dw.data<float>());
    });
  }

  void prepare_data() {
    const conv_descs d = descs(conv_direction::input_gradient);
    const auto hint = forward_desc(d);
    const dnnl::convolution_backward_data::primitive_desc desc(
      {dnnl::algorithm::convolution_direct, d.inner_src, d.inner_weights,
       d.inner_dst, d.strides, d.dilates, d.pad_before, d.pad_after},
      user_scratchpad(), cpu_engine(), hint);
    data_ = {dnnl::convolution_backward_data(desc),
             desc.scratchpad_desc(),
             {{{DNNL_ARG_DIFF_DST, d.dst, desc.diff_dst_desc()},
               {DNNL_ARG_WEIGHTS, d.weights, desc.weights_desc()}}},
             {DNNL_ARG_DIFF_SRC, d.src, desc.diff_src_desc()}};
    data_ready_ = true;
  }

  void prepare_weights() {
    const conv_descs d = descs(conv_direction::filter_gradient);
    const auto hint = forward_desc(d);
    const dnnl::convolution_backward_weights::primitive_desc desc(
      {dnnl::algorithm::convolution_direct, d.inner_src, d.inner_weights,
       d.inner_dst, d.strides, d.dilates, d.pad_before, d.pad_after},
      user_scratchpad(), cpu_engine(), hint);
    weights_ = {dnnl::convolution_backward_weights(desc),
                desc.scratchpad_desc(),
                {{{DNNL_ARG_SRC, d.src, desc.src_desc()},
                  {DNNL_ARG_DIFF_DST, d.dst, desc.diff_dst_desc()}}},
                {DNNL_ARG_DIFF_WEIGHTS, d.weights, desc.diff_weights_desc()}};
    weights_ready_ = true;
  }

  blocked_primitive data_;
  blocked_primitive weights_;
  bool data_ready_ = false;
  bool weights_ready_ = false;
};

} // namespace

std::unique_ptr<kernel> make_conv2d(const attribute_map& attributes) {
  return std::make_unique<conv_kernel>(attributes);
}

std::unique_ptr<kernel> make_conv2d_grad(const attribute_map& attributes) {
  return std::make_unique<conv_grad_kernel>(attributes);
}

} // namespace troupe::cpu
