// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/group_convolution.hpp>

#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/conv/group_conv_loops.hpp>
#include <troupe/kernels/cpu/conv/plane_buffer.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

namespace troupe::cpu::group_convolution {

namespace {

constexpr std::int64_t taps = conv_group_taps * conv_group_taps;

const group_conv_loops& loops_of(std::int64_t block) {
  return machine_vectors() == vector_level::v4 && block == 16
           ? group_conv_loops_v4
           : group_conv_loops_v3;
}

bool slides(const window_axis& a) {
  return a.extent == conv_group_taps && a.stride == 1 && a.dilation == 1
         && a.before == 1 && a.after == 1;
}

// The index of weight (tap, j) of channel c in the loops' order.
std::int64_t packed_index(std::int64_t c, std::int64_t tap, std::int64_t j,
                          std::int64_t lanes) {
  return ((c / lanes * taps + tap) * conv_group + j) * lanes + c % lanes;
}

// Channels [first, end).
struct channel_range {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

// Calls `use(packed, plain)` with both indices of each weight; plain filters
// are [c][j][tap].
template <class Use>
void for_each_weight(channel_range channels, std::int64_t lanes, Use use) {
  for (std::int64_t c = channels.first; c < channels.end; ++c)
    for (std::int64_t j = 0; j < conv_group; ++j)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        use(packed_index(c, tap, j, lanes), (c * conv_group + j) * taps + tap);
}

// The index of the same weight for the input gradient: filter and channel
// change places, and the taps are turned by 180 degrees.
std::int64_t turned(std::int64_t plain) {
  const std::int64_t tap = plain % taps;
  const std::int64_t j = plain / taps % conv_group;
  const std::int64_t c = plain / taps / conv_group;
  const std::int64_t filter = c / conv_group * conv_group + j;
  return (filter * conv_group + c % conv_group) * taps + (taps - 1 - tap);
}

// Calls `use(offset of the vector's first pixel, offset of its weights)` for
// each vector of channels.
template <class Use>
void for_each_plane(const conv_problem& p, channel_range channels,
                    std::int64_t block, std::int64_t lanes, Use use) {
  const std::int64_t pixels = p.in.numel(2, 4);
  for (std::int64_t n = 0; n < p.in[0]; ++n)
    for (std::int64_t c = channels.first; c < channels.end; c += lanes)
      use((n * p.in[1] + c / block * block) * pixels + c % block,
          c * taps * conv_group);
}

void convolve(const kernel_context& ctx, const conv_problem& p,
              std::int64_t block, stored_values x, const float* packed,
              stored_results out) {
  const group_conv_loops& loops = loops_of(block);
  const group_plane plane{p.in[2], p.in[3], block};
  const std::int64_t values = p.in.numel(2, 4) * block;
  plane_buffer given(ctx, values, x.rounded());
  plane_buffer made(ctx, values, out.rounded());
  for_each_plane(p, {0, p.in[1]}, block, loops.lanes,
                 [&](std::int64_t at, std::int64_t w) {
                   loops.convolve(plane, given.read(x + at), packed + w,
                                  made.begin(out + at));
                   made.wrote(out + at);
                 });
}

// Rounded planes are converted as a whole, so a vector must fill a block.
bool rounds(const conv_problem& p) {
  return p.in_format.rounded() || p.out_format.rounded();
}

} // namespace

bool fits(const conv_problem& p, std::int64_t block) {
  return machine_vectors() != vector_level::build && fits_blocks(p.in, block)
         && p.in[1] == p.filter[0] && p.filter[1] == conv_group
         && p.in[1] == p.groups * conv_group && slides(p.axes[0])
         && slides(p.axes[1]) && p.in[3] >= 8
         && (loops_of(block).lanes == block || !rounds(p));
}

void forward(kernel_context& ctx, const conv_problem& p, std::int64_t block,
             stored_values x, const float* filter, stored_results out) {
  tensor packed = ctx.scratch(p.filter.numel());
  float* to = packed.data<float>();
  for_each_weight({0, p.in[1]}, loops_of(block).lanes,
                  [&](auto at, auto plain) { to[at] = filter[plain]; });
  convolve(ctx, p, block, x, to, out);
}

void input_gradient(kernel_context& ctx, const conv_problem& p,
                    std::int64_t block, stored_values dout, const float* filter,
                    stored_results dx) {
  tensor packed = ctx.scratch(p.filter.numel());
  float* to = packed.data<float>();
  for_each_weight({0, p.in[1]}, loops_of(block).lanes,
                  [&](auto at, auto plain) { to[at] = filter[turned(plain)]; });
  convolve(ctx, p, block, dout, to, dx);
}

void filter_gradient(kernel_context& ctx, const conv_problem& p,
                     std::int64_t block, stored_values x, stored_values dout,
                     float* dw) {
  const group_conv_loops& loops = loops_of(block);
  const group_plane plane{p.in[2], p.in[3], block};
  tensor packed = ctx.scratch(p.filter.numel());
  float* sums = packed.data<float>();
  fill(sums, packed.numel(), 0.0f);
  const even_cut channels{p.in[1], worthwhile_parts(ctx.workers(), p),
                          loops.lanes};
  ctx.in_parts(channels.parts(), [&](std::size_t i) {
    const auto first = channels.first(i);
    const channel_range part{first, first + channels.size(i)};
    const std::int64_t values = p.in.numel(2, 4) * block;
    plane_buffer given(ctx, values, x.rounded());
    plane_buffer dgiven(ctx, values, dout.rounded());
    for_each_plane(p, part, block, loops.lanes,
                   [&](std::int64_t at, std::int64_t w) {
                     loops.weigh(plane, given.read(x + at),
                                 dgiven.read(dout + at), sums + w);
                   });
    for_each_weight(part, loops.lanes,
                    [&](auto at, auto plain) { dw[plain] = sums[at]; });
  });
}

} // namespace troupe::cpu::group_convolution
