// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/winograd/winograd_convolution.hpp>

#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/cpu/winograd/winograd_filters.hpp>
#include <troupe/kernels/cpu/winograd/winograd_images.hpp>

#include <algorithm>
#include <cstddef>

namespace troupe::cpu::winograd_convolution {

namespace {

using index = std::int64_t;

// Tiles per worker in a group: the groups of tiles are multiplied one after the
// other.
constexpr index worker_tiles = 128;
// The sums between this many input channels and two vectors of output channels
// fit into the second-level cache.
constexpr index sum_channels = 64;
// The third-level cache holds this many floats of transformed tiles. If those
// of all channels do not fit, channels are taken in windows of
// `window_channels`. The tiles of one operand are then transformed again for
// each window of the other.
constexpr index most_transformed = index{2} << 20;
constexpr index window_channels = 128;

// Vectors of channels [first, first + count).
struct block_range {
  index first = 0;
  index count = 0;
};

// The operands of the product.
struct operands {
  const winograd_loops& loops;
  winograd_images<stored_values> image;
  winograd_images<stored_values> gradient;
  winograd_tiling tiles;
  std::size_t workers; // that share the work
};

winograd_images<stored_values> blocks_of(winograd_images<stored_values> images,
                                         block_range blocks) {
  images.first = blocks.first;
  images.blocks = blocks.count;
  return images;
}

// The filter gradient between a window of input channels and a window of output
// channels.
class gradient_window {
public:
  gradient_window(const kernel_context& ctx, const conv_problem& p,
                  const operands& given, const even_cut& groups, block_range in,
                  block_range out)
    : loops_(given.loops), layout_(loops_, p), workers_(given.workers),
      groups_(groups), in_(in), out_(out),
      image_(ctx, loops_.transform_image, loops_.lanes,
             blocks_of(given.image, in), given.tiles.per_sample,
             groups.size(0)),
      gradient_(ctx, loops_.transform_gradient, loops_.lanes,
                blocks_of(given.gradient, out), given.tiles.per_sample,
                groups.size(0)),
      kept_(ctx.scratch(keeps() ? units() * sums_size() : 0)) {}

  void run(kernel_context& ctx, float* dw) {
    for (std::size_t i = 0; i < groups_.parts(); ++i) {
      fill(ctx, {groups_.first(i), groups_.size(i)});
      share(ctx, units(), [&](index unit) { add_unit(ctx, unit, i, dw); });
    }
  }

private:
  // Work that is not worth a cut stays whole.
  template <class Work>
  void share(kernel_context& ctx, index units, Work work) const {
    const even_cut cut{units,
                       workers_ == 1 ? 1 : static_cast<std::size_t>(units)};
    ctx.in_parts(cut.parts(), [&](std::size_t i) {
      for (index unit = cut.first(i); unit < cut.first(i) + cut.size(i); ++unit)
        work(unit);
    });
  }

  void fill(kernel_context& ctx, tile_range tiles) {
    const index images = image_.units(tiles);
    share(ctx, images + gradient_.units(tiles), [&](index unit) {
      if (unit < images)
        image_.fill_unit(tiles, unit);
      else
        gradient_.fill_unit(tiles, unit - images);
    });
  }

  // A unit of work: the sums between `sum_channels` of the images and a pair of
  // vectors of the gradient.

  index depth() const noexcept { return sum_channels / loops_.lanes; }
  index depths() const noexcept { return ceil_div(in_.count, depth()); }
  index units() const noexcept {
    return depths() * ceil_div(out_.count, winograd_columns);
  }
  index row() const noexcept { return winograd_columns * loops_.lanes; }
  index step() const noexcept { return sum_channels * row() + loops_.lanes; }
  index sums_size() const noexcept { return winograd_values * step(); }
  bool keeps() const noexcept { return groups_.parts() > 1; }

  void add_unit(kernel_context& ctx, index unit, std::size_t group, float* dw) {
    tensor memory = ctx.scratch(keeps() ? 0 : sums_size());
    const winograd_block<float> sums{
      keeps() ? kept_.data<float>() + unit * sums_size() : memory.data<float>(),
      step(), row()};
    const index i = unit % depths() * depth();
    const index o = unit / depths() * winograd_columns;
    const block_range in{i, std::min(depth(), in_.count - i)};
    const block_range out{o, std::min(winograd_columns, out_.count - o)};
    loops_.multiply_tiles(image_.from(i), in.count, gradient_.from(o),
                          out.count, groups_.size(group), sums, group > 0);
    if (group + 1 == groups_.parts())
      make_filters(ctx, sums, {in_.first + i, in.count},
                   {out_.first + o, out.count}, dw);
  }

  void make_filters(kernel_context& ctx, const winograd_block<float>& sums,
                    block_range in, block_range out, float* dw) const {
    const index lanes = loops_.lanes;
    tensor memory = ctx.scratch(layout_.buffer_size());
    float* buffer = memory.data<float>();
    for (index o = 0; o < out.count; ++o)
      for (index i = 0; i < in.count; ++i) {
        const float* from = sums.at + i * lanes * row() + o * lanes;
        const index made = out.first + o;
        const index given = in.first + i;
        loops_.make_filters({from, sums.step, sums.row}, lanes,
                            layout_.begin(dw, made, given, buffer));
        layout_.wrote(dw, made, given, buffer);
      }
  }

  const winograd_loops& loops_;
  winograd_filter_layout layout_;
  std::size_t workers_;
  even_cut groups_;
  block_range in_;
  block_range out_;
  transformed_tiles image_;
  transformed_tiles gradient_;
  tensor kept_; // the sums of all units, if there are several groups
};

// Blocks of channels per window, for each operand. One window has all channels
// if there is one group of tiles and its transformed tiles fit into the cache.
index window_blocks(const conv_problem& p, const even_cut& groups,
                    index lanes) {
  const index channels = p.in[1] + p.out[1];
  const index tiles = winograd_values * (groups.size(0) + 1);
  return groups.parts() == 1 && channels * tiles <= most_transformed
           ? std::max(p.in[1], p.out[1]) / lanes
           : window_channels / lanes;
}

} // namespace

void filter_gradient(kernel_context& ctx, const conv_problem& p,
                     stored_values x, stored_values dout, float* dw) {
  const winograd_loops& loops = *winograd_loops_for(p);
  const index lanes = loops.lanes;
  const given_images given_x(ctx, loops, p.in, lie_plain(p, p.in_format), x);
  const given_images given_dout(ctx, loops, p.out, lie_plain(p, p.out_format),
                                dout);
  const winograd_tiling tiles(p.out);
  operands given{
    loops, view_images(given_x.at(), p, p.in, p.in_format, tiles, loops),
    view_images(given_dout.at(), p, p.out, p.out_format, tiles, loops), tiles,
    worthwhile_parts(ctx.workers(), p)};
  given.image.plane.before_y = p.axes[0].before;
  given.image.plane.before_x = p.axes[1].before;
  const auto workers = static_cast<index>(given.workers);
  const even_cut groups{tiles.all, static_cast<std::size_t>(ceil_div(
                                     tiles.all, workers * worker_tiles))};
  const index most = window_blocks(p, groups, lanes);
  for (index o = 0; o < given.gradient.blocks; o += most)
    for (index i = 0; i < given.image.blocks; i += most)
      gradient_window(ctx, p, given, groups,
                      {i, std::min(most, given.image.blocks - i)},
                      {o, std::min(most, given.gradient.blocks - o)})
        .run(ctx, dw);
}

} // namespace troupe::cpu::winograd_convolution
