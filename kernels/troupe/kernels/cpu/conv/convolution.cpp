// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/convolution.hpp>

#include <troupe/kernels/cpu/conv/filter_blocks.hpp>
#include <troupe/kernels/cpu/conv/group_convolution.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/library/single_threaded.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/cpu/winograd/winograd_convolution.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

using dnnl::memory;
using tag = memory::format_tag;

struct conv_tensors {
  memory::desc src;
  memory::desc weights;
  memory::desc dst;
};

// oneDNN's descriptions of a convolution.
struct conv_descs {
  conv_tensors outer; // layouts of the caller's tensors
  // layouts that the primitive uses; `any` leaves the choice to oneDNN
  conv_tensors inner;
  // for the forward primitive, which oneDNN requires as a hint for gradients
  conv_tensors forward;
  memory::dims strides;
  memory::dims dilates; // 0: not dilated
  memory::dims pad_before;
  memory::dims pad_after;
};

using element = memory::data_type;

// Element types inside the primitive.
struct conv_elements {
  element src = element::f32;
  element weights = element::f32;
  element dst = element::f32;
};

memory::desc desc_of(const memory::dims& dims, tag format,
                     element type = element::f32) {
  return {dims, type, format};
}

element element_of(precision numbers) {
  return numbers == precision::bfloat16 ? element::bf16 : element::f32;
}

// With bfloat16 factors both operands are rounded. Sums and filter gradients
// stay float32; images that are results follow `result`.
conv_elements elements_of(conv_direction direction, precision factors,
                          precision result) {
  if (factors == precision::float32)
    return {};
  conv_elements e{element::bf16, element::bf16, element::bf16};
  switch (direction) {
  case conv_direction::forward: e.dst = element_of(result); break;
  case conv_direction::input_gradient: e.src = element_of(result); break;
  case conv_direction::filter_gradient: e.weights = element::f32; break;
  }
  return e;
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

// Whether oneDNN is faster on plain tensors (it unfolds them and multiplies
// matrices) than with its blocked kernels and the reorders before and after.
// Measured on AVX-512 with the shapes of bench/kernel_bench.cpp. Plain is 1.1
// to 1.5 times as fast for pointwise convolutions, except for tiny images and
// for filter gradients with fewer output than input channels; 3 to 6 times for
// input gradients with a few input channels; 1.2 times for channels that fill
// half of their blocks. It would also be faster for the forward pass over a few
// input channels. But if the output channels fill blocks, a blocked result is
// better for the layers that follow: resnet18 on 32x32 pixels gains 5 percent,
// since sums keep the layout of their first term.
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
  return direction == conv_direction::forward && in * taps <= 32 && out >= 16
         && out % 16 != 0;
}

// oneDNN's bfloat16 kernels for these convolutions are slow (Zen 4).
bool has_slow_rounding(conv_direction direction, const conv_problem& p) {
  const std::int64_t channels = p.filter[1]; // of a group
  return p.groups > 1
         && (channels == 1
             || (direction == conv_direction::filter_gradient
                 && channels < 16));
}

tag image_tag(const conv_problem& p, std::int64_t block) {
  if (block == 16)
    return tag::nChw16c;
  if (block == 8)
    return tag::nChw8c;
  return p.channels_last ? tag::nhwc : tag::nchw;
}

memory::desc image_desc(const conv_problem& p, const shape& dims,
                        const image_format& format) {
  return desc_of(dims_of(dims), image_tag(p, format.block),
                 element_of(format.numbers));
}

// The precisions of a primitive's factors and of its result.
struct conv_numbers {
  precision factors = precision::float32;
  precision result = precision::float32;
};

conv_descs describe(conv_direction direction, const conv_numbers& numbers,
                    const conv_problem& p) {
  const memory::dims src = dims_of(p.in);
  const memory::dims weights = filter_dims(p);
  const memory::dims dst = dims_of(p.out);
  const tag src_tag = image_tag(p, p.in_format.block);
  const tag dst_tag = image_tag(p, p.out_format.block);
  const tag plain_filter = p.groups == 1 ? tag::oihw : tag::goihw;
  const tag filter = p.filter_in_blocks ? tag::OIhw16i16o : plain_filter;
  const bool blocked = p.in_format.block > 0 || p.out_format.block > 0;
  const bool plain =
    !blocked && !p.channels_last && prefers_plain(direction, p);
  const auto pair = [&p](auto get) {
    return memory::dims{get(p.axes[0]), get(p.axes[1])};
  };
  const auto inner = [&](const conv_elements& e) {
    return conv_tensors{
      desc_of(src, plain ? src_tag : tag::any, e.src),
      desc_of(weights, plain ? plain_filter : tag::any, e.weights),
      desc_of(dst, plain ? dst_tag : tag::any, e.dst)};
  };
  return {{image_desc(p, p.in, p.in_format), desc_of(weights, filter),
           image_desc(p, p.out, p.out_format)},
          inner(elements_of(direction, numbers.factors, numbers.result)),
          inner(elements_of(conv_direction::forward, numbers.factors,
                            precision::float32)),
          pair([](const window_axis& a) { return a.stride; }),
          pair([](const window_axis& a) { return a.dilation - 1; }),
          pair([](const window_axis& a) { return a.before; }),
          pair([](const window_axis& a) { return a.after; })};
}

constexpr auto direct = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward_desc(const conv_descs& d,
                                                       const conv_tensors& t) {
  return {{dnnl::prop_kind::forward_training, direct, t.src, t.weights, t.dst,
           d.strides, d.dilates, d.pad_before, d.pad_after},
          user_scratchpad(),
          cpu_engine()};
}

// If oneDNN chose blocks for the result, the result keeps them, with elements
// of precision `numbers`.
image_format result_format(const memory::desc& made, const conv_problem& p,
                           precision numbers) {
  for (const std::int64_t block : {16, 8})
    if (!p.channels_last && fits_blocks(p.out, block)
        && made
             == desc_of(dims_of(p.out), image_tag(p, block), made.data_type()))
      return {block, numbers};
  return {};
}

// A result in blocks has the precision `numbers.result`. The primitive itself
// rounds its result only if it rounds its factors, too; otherwise a reorder
// does.
blocked_primitive make_forward(const conv_numbers& numbers,
                               const conv_problem& p, image_format& format) {
  const conv_descs d = describe(conv_direction::forward, numbers, p);
  const auto desc = forward_desc(d, d.inner);
  format = result_format(desc.dst_desc(), p, numbers.result);
  if (format.block == 0 && numbers.result != precision::float32)
    return make_forward({numbers.factors}, p, format);
  const auto dst = image_desc(p, p.out, format);
  return {
    dnnl::convolution_forward(desc),
    desc.scratchpad_desc(),
    {{{DNNL_ARG_SRC, d.outer.src, desc.src_desc()},
      {DNNL_ARG_WEIGHTS, d.outer.weights, desc.weights_desc()}}},
    {DNNL_ARG_DST, format.block > 0 ? dst : d.outer.dst, desc.dst_desc()}};
}

blocked_primitive make_input_gradient(const conv_descs& d) {
  const dnnl::convolution_backward_data::primitive_desc desc(
    {direct, d.inner.src, d.inner.weights, d.inner.dst, d.strides, d.dilates,
     d.pad_before, d.pad_after},
    user_scratchpad(), cpu_engine(), forward_desc(d, d.forward));
  return {dnnl::convolution_backward_data(desc),
          desc.scratchpad_desc(),
          {{{DNNL_ARG_DIFF_DST, d.outer.dst, desc.diff_dst_desc()},
            {DNNL_ARG_WEIGHTS, d.outer.weights, desc.weights_desc()}}},
          {DNNL_ARG_DIFF_SRC, d.outer.src, desc.diff_src_desc()}};
}

// Sets `in_blocks`: whether the primitive produces the layout of
// filter_blocks.hpp.
blocked_primitive make_filter_gradient(const conv_problem& p,
                                       const conv_descs& d, bool& in_blocks) {
  const dnnl::convolution_backward_weights::primitive_desc desc(
    {direct, d.inner.src, d.inner.weights, d.inner.dst, d.strides, d.dilates,
     d.pad_before, d.pad_after},
    user_scratchpad(), cpu_engine(), forward_desc(d, d.forward));
  in_blocks =
    p.groups == 1 && fits_filter_blocks(p.filter)
    && desc.diff_weights_desc() == desc_of(dims_of(p.filter), tag::OIhw16i16o);
  return {dnnl::convolution_backward_weights(desc),
          desc.scratchpad_desc(),
          {{{DNNL_ARG_SRC, d.outer.src, desc.src_desc()},
            {DNNL_ARG_DIFF_DST, d.outer.dst, desc.diff_dst_desc()}}},
          {DNNL_ARG_DIFF_WEIGHTS, d.outer.weights, desc.diff_weights_desc()}};
}

// Calls `use`; errors of oneDNN become error(kernel_failure).
template <class Use>
void with_library(Use use) {
  try {
    ensure_single_threaded();
    use();
  } catch (const dnnl::error& failure) {
    throw error(errc::kernel_failure,
                std::string("oneDNN convolution: ") + failure.what());
  }
}

} // namespace

std::size_t worthwhile_parts(std::size_t workers,
                             const conv_problem& p) noexcept {
  return worthwhile_parts(workers, p.out.numel() * p.filter.numel(1, 4),
                          least_conv_part);
}

bool same_in_kernel(const conv_problem& a, const conv_problem& b) noexcept {
  return a.in == b.in && a.filter == b.filter && a.out == b.out
         && a.in_format == b.in_format && a.out_format == b.out_format
         && a.filter_in_blocks == b.filter_in_blocks;
}

void convolution::make_direct(const conv_problem& p) {
  const bool rounds = !has_slow_rounding(direction_, p);
  const auto factors = rounds ? options_.factors : precision::float32;
  switch (direction_) {
  case conv_direction::forward:
    primitive_ = make_forward({factors, options_.factors}, p, result_);
    break;
  case conv_direction::input_gradient:
    result_ = p.in_format;
    primitive_ =
      make_input_gradient(describe(direction_, {factors, result_.numbers}, p));
    break;
  case conv_direction::filter_gradient:
    primitive_ = make_filter_gradient(p, describe(direction_, {factors}, p),
                                      makes_filter_blocks_);
    break;
  }
}

// Requires operands in blocks. The result then is in the same blocks.
bool convolution::takes_groups(const conv_problem& p) const {
  const std::int64_t block = p.in_format.block;
  const bool given = direction_ == conv_direction::forward
                       ? block > 0
                       : block > 0 && block == p.out_format.block;
  return given && group_convolution::fits(p, block);
}

void convolution::run_rows(kernel_context& ctx, const float* a, const float* b,
                           float* result) const {
  switch (direction_) {
  case conv_direction::forward: return rows_.forward(ctx, a, b, result);
  case conv_direction::input_gradient:
    return rows_.input_gradient(ctx, a, b, result);
  case conv_direction::filter_gradient:
    return rows_.filter_gradient(ctx, a, b, result);
  }
}

void convolution::run_groups(kernel_context& ctx, stored_values a,
                             stored_values b, stored_results result) const {
  using namespace group_convolution;
  const std::int64_t block = prepared_.in_format.block;
  switch (direction_) {
  case conv_direction::forward:
    return forward(ctx, prepared_, block, a, b.floats(), result);
  case conv_direction::input_gradient:
    return input_gradient(ctx, prepared_, block, a, b.floats(), result);
  case conv_direction::filter_gradient:
    return filter_gradient(ctx, prepared_, block, a, b, result.floats());
  }
}

bool convolution::takes_winograd(const conv_problem& p) const {
  return options_.winograd
         && winograd_convolution::fits(direction_, p, options_.factors);
}

void convolution::run_winograd(kernel_context& ctx, stored_values a,
                               stored_values b, stored_results result) const {
  using namespace winograd_convolution;
  switch (direction_) {
  case conv_direction::forward:
    return forward(ctx, prepared_, a, b.floats(), result);
  case conv_direction::input_gradient:
    return input_gradient(ctx, prepared_, a, b.floats(), result);
  case conv_direction::filter_gradient:
    return filter_gradient(ctx, prepared_, a, b, result.floats());
  }
}

convolution::method convolution::method_for(const conv_problem& p) const {
  if (row_convolution::fits(p))
    return method::rows;
  if (takes_groups(p))
    return method::groups;
  return takes_winograd(p) ? method::winograd : method::library;
}

bool convolution::shares_its_work(const conv_problem& p) const {
  return method_for(p) == method::winograd;
}

image_format convolution::prepare(const conv_problem& problem) {
  if (ready_ && same_in_kernel(prepared_, problem))
    return result_;
  ready_ = false;
  result_ = {};
  makes_filter_blocks_ = false;
  method_ = method_for(problem);
  const bool forward = direction_ == conv_direction::forward;
  switch (method_) {
  case method::library: with_library([&] { make_direct(problem); }); break;
  case method::rows: rows_.prepare(problem); break;
  case method::groups:
    result_ = forward ? image_format{problem.in_format.block, options_.factors}
                      : problem.in_format;
    break;
  case method::winograd:
    makes_filter_blocks_ = problem.filter_in_blocks;
    if (!problem.channels_last)
      result_ = forward ? image_format{winograd_convolution::block(problem),
                                       options_.factors}
                        : problem.in_format;
    break;
  }
  prepared_ = problem;
  ready_ = true;
  return result_;
}

void convolution::run(kernel_context& ctx, stored_values a, stored_values b,
                      stored_results result) {
  switch (method_) {
  case method::groups: return run_groups(ctx, a, b, result);
  case method::winograd: return run_winograd(ctx, a, b, result);
  case method::rows:
    return run_rows(ctx, a.floats(), b.floats(), result.floats());
  case method::library: break;
  }
  with_library([&] { primitive_.run(ctx, a.data(), b.data(), result.data()); });
}

const filter_pack* convolution::pack() const noexcept {
  return method_ == method::library
             && direction_ != conv_direction::filter_gradient
           ? primitive_.pack()
           : nullptr;
}

void convolution::run_packed(kernel_context& ctx, stored_values a,
                             const void* packed, stored_results result) {
  with_library(
    [&] { primitive_.run_packed(ctx, a.data(), packed, result.data()); });
}

} // namespace troupe::cpu
