// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/winograd/winograd_images.hpp>

#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/layout/layout_traffic.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <cstddef>

namespace troupe::cpu {

namespace {

using index = std::int64_t;

// Transposes [lanes, pixels] to [pixels, lanes].
void block_plane(const winograd_loops& loops, const float* from, float* to,
                 index pixels) {
  const index lanes = loops.lanes;
  index p = 0;
  for (; p + lanes <= pixels; p += lanes)
    loops.transpose(from + p, pixels, to + p * lanes, lanes);
  for (; p < pixels; ++p)
    for (index c = 0; c < lanes; ++c)
      to[p * lanes + c] = from[c * pixels + p];
}

void unblock_plane(const winograd_loops& loops, const float* from, float* to,
                   index pixels) {
  const index lanes = loops.lanes;
  index p = 0;
  for (; p + lanes <= pixels; p += lanes)
    loops.transpose(from + p * lanes, lanes, to + p, pixels);
  for (; p < pixels; ++p)
    for (index c = 0; c < lanes; ++c)
      to[c * pixels + p] = from[p * lanes + c];
}

using plane_copy = void (*)(const winograd_loops&, const float*, float*, index);

// Calls `copy` for each vector of channels of each image of `dims`.
void copy_planes(kernel_context& ctx, const winograd_loops& loops,
                 const shape& dims, plane_copy copy, const float* from,
                 float* to) {
  const index pixels = dims[2] * dims[3];
  const index size = pixels * loops.lanes;
  const even_cut cut{
    dims[0] * dims[1] / loops.lanes,
    worthwhile_parts(ctx.workers(), dims.numel(), least_elements)};
  ctx.in_parts(cut.parts(), [&](std::size_t i) {
    for (index k = cut.first(i); k < cut.first(i) + cut.size(i); ++k)
      copy(loops, from + k * size, to + k * size, pixels);
  });
  add_layout_traffic(2 * sizeof(float)
                     * static_cast<std::size_t>(dims.numel()));
}

// Channels per block of a filter (filter_blocks.hpp).
constexpr index filter_block = 16;

// Tiles of one block of channels per unit of work.
constexpr index tiles_at_once = 32;

bool fills(index channels, index lanes) {
  return channels > 0 && channels % lanes == 0;
}

} // namespace

const winograd_loops* winograd_loops_for(const conv_problem& p) {
  const auto fit = [&p](const winograd_loops& loops) {
    const auto lies = [&loops](const image_format& format) {
      return format.block % loops.lanes == 0; // plain: 0
    };
    return fills(p.in[1], loops.lanes) && fills(p.out[1], loops.lanes)
           && lies(p.in_format) && lies(p.out_format)
           && (!p.filter_in_blocks || loops.lanes == filter_block);
  };
  const auto level = machine_vectors();
  if (level == vector_level::v4 && fit(winograd_loops_v4))
    return &winograd_loops_v4;
  return level != vector_level::build && fit(winograd_loops_v3)
           ? &winograd_loops_v3
           : nullptr;
}

bool lie_plain(const conv_problem& p, const image_format& format) noexcept {
  return !p.channels_last && format.block == 0;
}

std::int64_t side_by_side(const conv_problem& p, const shape& dims,
                          const image_format& format,
                          const winograd_loops& loops) noexcept {
  if (p.channels_last)
    return dims[1];
  return format.block > 0 ? format.block : loops.lanes;
}

void copy_into_blocks(kernel_context& ctx, const winograd_loops& loops,
                      const shape& dims, const float* from, float* to) {
  copy_planes(ctx, loops, dims, block_plane, from, to);
}

void copy_from_blocks(kernel_context& ctx, const winograd_loops& loops,
                      const shape& dims, const float* from, float* to) {
  copy_planes(ctx, loops, dims, unblock_plane, from, to);
}

transformed_tiles::transformed_tiles(
  const kernel_context& ctx, transform loop, index lanes,
  const winograd_images<stored_values>& images, index tiles_per_sample,
  index most_tiles)
  : loop_(loop), images_(images), tiles_per_sample_(tiles_per_sample),
    lanes_(lanes), step_((most_tiles + 1) * lanes_),
    memory_(ctx.scratch(images.blocks * block_step())),
    at_(memory_.data<float>()) {}

index transformed_tiles::units(tile_range tiles) const noexcept {
  return blocks() * ceil_div(tiles.count, tiles_at_once);
}

void transformed_tiles::fill_unit(tile_range tiles, index unit) {
  const index pieces = ceil_div(tiles.count, tiles_at_once);
  const index block = unit / pieces;
  const index begin = unit % pieces * tiles_at_once;
  const index count = std::min(tiles_at_once, tiles.count - begin);
  for_each_sample({tiles.first + begin, count}, tiles_per_sample_,
                  [&](index sample, tile_range part, index done) {
                    loop_(images_.plane, images_.image(sample, block),
                          part.first, part.count, place(block, begin + done));
                  });
}

} // namespace troupe::cpu
