// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/row_convolution.hpp>

#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <limits>

namespace troupe::cpu {

namespace {

constexpr std::int64_t pixels_per_vector = 8;

bool slides_inside(const window_axis& a) {
  return a.stride == 1 && a.dilation == 1 && a.before == 0 && a.after == 0;
}

const row_conv_loops& machine_loops() {
  return machine_vectors() == vector_level::v4 ? row_conv_loops_v4
                                               : row_conv_loops_v3;
}

} // namespace

bool row_convolution::fits(const conv_problem& p) {
  const bool plain =
    !p.channels_last && p.in_format.block == 0 && p.out_format.block == 0;
  const bool few = p.in[1] < 32 && p.filter[0] % 16 != 0;
  return machine_vectors() != vector_level::build && plain && few
         && p.groups == 1 && p.filter.numel(2, 4) > 1
         && slides_inside(p.axes[0]) && slides_inside(p.axes[1])
         && p.out[3] % pixels_per_vector == 0
         && p.in.numel(1, 4) <= std::numeric_limits<std::int32_t>::max();
}

void row_convolution::prepare(const conv_problem& p) {
  const auto offset = [&](std::int64_t c, std::int64_t h, std::int64_t w) {
    return static_cast<std::int32_t>((c * p.in[2] + h) * p.in[3] + w);
  };
  tap_offsets_.clear();
  for (std::int64_t c = 0; c < p.filter[1]; ++c)
    for (std::int64_t h = 0; h < p.filter[2]; ++h)
      for (std::int64_t w = 0; w < p.filter[3]; ++w)
        tap_offsets_.push_back(offset(c, h, w));
  scattered_taps_.clear();
  scattered_offsets_.clear();
  const std::int64_t places = p.filter.numel(2, 4);
  for (std::int64_t place = 0; place < places; ++place)
    for (std::int64_t c = 0; c < p.filter[1]; ++c) {
      const std::int64_t tap = c * places + place;
      scattered_taps_.push_back(static_cast<std::int32_t>(tap));
      scattered_offsets_.push_back(tap_offsets_[static_cast<std::size_t>(tap)]);
    }
  in_offsets_.clear();
  out_offsets_.clear();
  for (std::int64_t h = 0; h < p.out[2]; ++h)
    for (std::int64_t w = 0; w < p.out[3]; w += pixels_per_vector) {
      in_offsets_.push_back(offset(0, h, w));
      out_offsets_.push_back(static_cast<std::int32_t>(h * p.out[3] + w));
    }
  shape_ = {.samples = p.in[0],
            .filters = p.filter[0],
            .taps = p.filter.numel(1, 4),
            .vectors = static_cast<std::int64_t>(out_offsets_.size()),
            .in_size = p.in.numel(1, 4),
            .out_size = p.out.numel(1, 4),
            .out_plane = p.out.numel(2, 4)};
}

row_conv_shape row_convolution::shape() const {
  row_conv_shape s = shape_;
  s.tap_offsets = tap_offsets_.data();
  s.in_offsets = in_offsets_.data();
  s.out_offsets = out_offsets_.data();
  return s;
}

void row_convolution::forward(kernel_context& ctx, const float* x,
                              const float* filter, float* out) const {
  const std::int64_t groups = ceil_div(shape_.filters, row_conv_filters);
  tensor packed = ctx.scratch(groups * row_conv_filters * shape_.taps);
  float* to = packed.data<float>();
  for (std::int64_t f = 0; f < groups * row_conv_filters; f += row_conv_filters)
    for (std::int64_t k = 0; k < shape_.taps; ++k)
      for (std::int64_t i = f; i < f + row_conv_filters; ++i)
        *to++ = i < shape_.filters ? filter[i * shape_.taps + k] : 0.0f;
  machine_loops().forward(shape(), x, packed.data<float>(), out);
}

void row_convolution::input_gradient(kernel_context& ctx, const float* dout,
                                     const float* filter, float* dx) const {
  const std::int64_t groups = ceil_div(shape_.taps, row_conv_taps);
  tensor packed = ctx.scratch(groups * row_conv_taps * shape_.filters);
  float* to = packed.data<float>();
  for (std::int64_t k = 0; k < groups * row_conv_taps; k += row_conv_taps)
    for (std::int64_t f = 0; f < shape_.filters; ++f)
      for (std::int64_t i = k; i < k + row_conv_taps; ++i)
        *to++ = i < shape_.taps
                  ? filter[f * shape_.taps + scattered_taps_[std::size_t(i)]]
                  : 0.0f;
  row_conv_shape scattered = shape();
  scattered.tap_offsets = scattered_offsets_.data();
  fill(dx, shape_.samples * shape_.in_size, 0.0f);
  machine_loops().input_gradient(scattered, dout, packed.data<float>(), dx);
}

// Workers share the filters.
void row_convolution::filter_gradient(kernel_context& ctx, const float* x,
                                      const float* dout, float* dw) const {
  const auto work = shape_.samples * shape_.out_size * shape_.taps;
  const even_cut filters{shape_.filters,
                         worthwhile_parts(ctx.workers(), work, least_conv_part),
                         row_conv_filters};
  ctx.in_parts(filters.parts(), [&](std::size_t i) {
    auto part = shape();
    part.filters = filters.size(i);
    const auto first = filters.first(i);
    float* to = dw + first * part.taps;
    fill(to, part.filters * part.taps, 0.0f);
    machine_loops().filter_gradient(part, x, dout + first * part.out_plane, to);
  });
}

} // namespace troupe::cpu
