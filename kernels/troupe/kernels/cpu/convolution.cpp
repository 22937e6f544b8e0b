// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/convolution.hpp>

#include <troupe/kernels/cpu/single_threaded.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

using dnnl::memory;
using tag = memory::format_tag;

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

memory::desc desc_of(const memory::dims& dims, tag format) {
  return {dims, memory::data_type::f32, format};
}

memory::dims dims_of(const shape& s) {
  return {s.begin(), s.end()};
}

memory::dims filter_dims(const conv_problem& p) {
  const shape& f = p.filter;
  if (p.groups == 1)
    return dims_of(f);
  return {p.groups, f[0] / p.groups, f[1], f[2], f[3]};
}

std::int64_t padded_to_block(std::int64_t channels) {
  return (channels + 15) / 16 * 16;
}

// Whether oneDNN's multiplication of unfolded plain tensors is faster than its
// blocked kernels with conversions before and after. Measured on AVX-512 with
// the shapes of bench/kernel_bench.cpp: pointwise convolutions gain 1.1 to 1.5
// times (but for tiny images, and filter gradients to fewer channels),
// gradients of images with a few channels 3 to 6 times, and channels that fill
// half of their blocks 1.2 times.
bool prefers_plain(conv_direction direction, const conv_problem& s) {
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

conv_descs describe(conv_direction direction, const conv_problem& p) {
  const memory::dims src = dims_of(p.in);
  const memory::dims weights = filter_dims(p);
  const memory::dims dst = dims_of(p.out);
  const tag image = p.channels_last ? tag::nhwc : tag::nchw;
  const tag filter = p.groups == 1 ? tag::oihw : tag::goihw;
  const bool plain = !p.channels_last && prefers_plain(direction, p);
  const auto pair = [&p](auto get) {
    return memory::dims{get(p.axes[0]), get(p.axes[1])};
  };
  return {desc_of(src, image),
          desc_of(weights, filter),
          desc_of(dst, image),
          desc_of(src, plain ? image : tag::any),
          desc_of(weights, plain ? filter : tag::any),
          desc_of(dst, plain ? image : tag::any),
          pair([](const window_axis& a) { return a.stride; }),
          pair([](const window_axis& a) { return a.dilation - 1; }),
          pair([](const window_axis& a) { return a.before; }),
          pair([](const window_axis& a) { return a.after; })};
}

dnnl::convolution_forward::primitive_desc forward_desc(const conv_descs& d) {
  return {{dnnl::prop_kind::forward_training,
           dnnl::algorithm::convolution_direct, d.inner_src, d.inner_weights,
           d.inner_dst, d.strides, d.dilates, d.pad_before, d.pad_after},
          user_scratchpad(),
          cpu_engine()};
}

blocked_primitive make_forward(const conv_descs& d) {
  const auto desc = forward_desc(d);
  return {dnnl::convolution_forward(desc),
          desc.scratchpad_desc(),
          {{{DNNL_ARG_SRC, d.src, desc.src_desc()},
            {DNNL_ARG_WEIGHTS, d.weights, desc.weights_desc()}}},
          {DNNL_ARG_DST, d.dst, desc.dst_desc()}};
}

blocked_primitive make_input_gradient(const conv_descs& d) {
  const dnnl::convolution_backward_data::primitive_desc desc(
    {dnnl::algorithm::convolution_direct, d.inner_src, d.inner_weights,
     d.inner_dst, d.strides, d.dilates, d.pad_before, d.pad_after},
    user_scratchpad(), cpu_engine(), forward_desc(d));
  return {dnnl::convolution_backward_data(desc),
          desc.scratchpad_desc(),
          {{{DNNL_ARG_DIFF_DST, d.dst, desc.diff_dst_desc()},
            {DNNL_ARG_WEIGHTS, d.weights, desc.weights_desc()}}},
          {DNNL_ARG_DIFF_SRC, d.src, desc.diff_src_desc()}};
}

blocked_primitive make_filter_gradient(const conv_descs& d) {
  const dnnl::convolution_backward_weights::primitive_desc desc(
    {dnnl::algorithm::convolution_direct, d.inner_src, d.inner_weights,
     d.inner_dst, d.strides, d.dilates, d.pad_before, d.pad_after},
    user_scratchpad(), cpu_engine(), forward_desc(d));
  return {dnnl::convolution_backward_weights(desc),
          desc.scratchpad_desc(),
          {{{DNNL_ARG_SRC, d.src, desc.src_desc()},
            {DNNL_ARG_DIFF_DST, d.dst, desc.diff_dst_desc()}}},
          {DNNL_ARG_DIFF_WEIGHTS, d.weights, desc.diff_weights_desc()}};
}

// Of one kernel only the shapes change from step to step.
bool same_shapes(const conv_problem& a, const conv_problem& b) {
  return a.in == b.in && a.filter == b.filter && a.out == b.out;
}

} // namespace

void convolution::prepare(const conv_problem& problem) {
  ready_ = false;
  const conv_descs d = describe(direction_, problem);
  switch (direction_) {
  case conv_direction::forward: primitive_ = make_forward(d); break;
  case conv_direction::input_gradient:
    primitive_ = make_input_gradient(d);
    break;
  case conv_direction::filter_gradient:
    primitive_ = make_filter_gradient(d);
    break;
  }
  prepared_ = problem;
  ready_ = true;
}

void convolution::run(kernel_context& ctx, const conv_problem& problem,
                      const float* a, const float* b, float* result) {
  try {
    ensure_single_threaded();
    if (!ready_ || !same_shapes(prepared_, problem))
      prepare(problem);
    primitive_.run(ctx, a, b, result);
  } catch (const dnnl::error& failure) {
    throw error(errc::kernel_failure,
                std::string("oneDNN convolution: ") + failure.what());
  }
}

} // namespace troupe::cpu
