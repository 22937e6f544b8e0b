// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/winograd/winograd_convolution.hpp>

#include <troupe/kernels/cpu/conv/convolution.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/winograd/winograd_filters.hpp>
#include <troupe/kernels/cpu/winograd/winograd_images.hpp>

#include <algorithm>

namespace troupe::cpu::winograd_convolution {

namespace {

using index = std::int64_t;

// Tiles per chunk: the sums of a chunk fit into the second-level cache.
constexpr index chunk_tiles = 128;
// Input channels per product: their transformed filters fit into the same
// cache.
constexpr index chunk_channels = 64;

// One run: from the images that are read (`given`) to those that are written
// (`made`).
struct pass {
  const winograd_loops& loops;
  winograd_images<stored_values> given;
  winograd_images<stored_results> made;
  winograd_tiling tiles; // of the images that are made
  bool backward = false;

  index pairs() const noexcept {
    return ceil_div(made.blocks, winograd_columns);
  }
};

transformed_tiles transformed(const kernel_context& ctx, const pass& p,
                              index tiles) {
  return {ctx,     p.loops.transform_image, p.loops.lanes,
          p.given, p.tiles.per_sample,      tiles};
}

// The filters between two blocks of channels, for the forward pass or for the
// input gradient.
class filter_source {
public:
  filter_source(const pass& way, const conv_problem& p, const float* filter)
    : layout_(way.loops, p), filter_(filter), backward_(way.backward) {}

  index buffer_size() const noexcept { return layout_.buffer_size(); }

  winograd_block<const float> between(index given, index made,
                                      float* buffer) const {
    return backward_ ? layout_.backward(filter_, given, made, buffer)
                     : layout_.forward(filter_, made, given, buffer);
  }

private:
  winograd_filter_layout layout_;
  const float* filter_;
  bool backward_;
};

// The sums of up to `chunk_tiles` tiles for one pair of made blocks. One
// thread.
class tile_sums {
public:
  tile_sums(const kernel_context& ctx, const pass& p,
            const filter_source& filters)
    : loops_(p.loops), source_(filters),
      sums_row_(winograd_columns * loops_.lanes),
      sums_step_(chunk_tiles * sums_row_ + loops_.lanes),
      filters_step_((chunk_channels * winograd_columns + 1) * loops_.lanes),
      buffer_(ctx.scratch(filters.buffer_size())),
      filters_(ctx.scratch(winograd_values * filters_step_)),
      sums_(ctx.scratch(winograd_values * sums_step_)) {}

  // Computes blocks [made, made + columns) of up to `chunk_tiles` tiles.
  void add_up(const transformed_tiles& given, tile_range tiles, index made,
              index columns) {
    const index depth = chunk_channels / loops_.lanes;
    for (index block = 0; block < given.blocks(); block += depth) {
      const index blocks = std::min(depth, given.blocks() - block);
      const winograd_block<float> filters{filters_.data<float>(), filters_step_,
                                          columns * loops_.lanes};
      transform_filters(filters, block, blocks, made, columns);
      loops_.multiply(given.from(block, tiles.first), tiles.count, blocks,
                      {filters.at, filters.step, filters.row}, columns,
                      {sums_.data<float>(), sums_step_, sums_row_}, block > 0);
    }
  }

  // Writes the pixels of column `column` for the tiles from the `skipped`th on.
  void make(const winograd_plane& plane, tile_range tiles, index skipped,
            index column, void* image) const {
    const float* from = sums_.data<float>() + skipped * sums_row_;
    loops_.make_image(plane,
                      {from + column * loops_.lanes, sums_step_, sums_row_},
                      tiles.first, tiles.count, image);
  }

private:
  void transform_filters(const winograd_block<float>& to, index given,
                         index blocks, index made, index columns) {
    const index lanes = loops_.lanes;
    for (index i = 0; i < blocks; ++i)
      for (index j = 0; j < columns; ++j)
        loops_.transform_filters(
          source_.between(given + i, made + j, buffer_.data<float>()), lanes,
          {to.at + i * lanes * to.row + j * lanes, to.step, to.row});
  }

  const winograd_loops& loops_;
  const filter_source& source_;
  index sums_row_;
  index sums_step_;
  index filters_step_;
  tensor buffer_;
  tensor filters_;
  tensor sums_;
};

// Computes pair `pair` of made blocks for the tiles `chunk`, counted from the
// first tile of `group`; `given` holds the transformed tiles of `group`.
void make_pair(tile_sums& sums, const pass& p, const transformed_tiles& given,
               tile_range group, tile_range chunk, index pair) {
  const index first = pair * winograd_columns;
  const index columns = std::min(winograd_columns, p.made.blocks - first);
  sums.add_up(given, chunk, first, columns);
  for_each_sample({group.first + chunk.first, chunk.count}, p.tiles.per_sample,
                  [&](index sample, tile_range part, index done) {
                    for (index j = 0; j < columns; ++j)
                      sums.make(p.made.plane, part, done, j,
                                p.made.image(sample, first + j));
                  });
}

// Each worker transforms a chunk of tiles and multiplies it with all filters.
void convolve_chunks(kernel_context& ctx, const pass& p,
                     const filter_source& filters, const even_cut& chunks) {
  ctx.in_parts(chunks.parts(), [&](std::size_t i) {
    const tile_range chunk{chunks.first(i), chunks.size(i)};
    auto given = transformed(ctx, p, chunk.count);
    given.fill(chunk);
    tile_sums sums(ctx, p, filters);
    for (index pair = 0; pair < p.pairs(); ++pair)
      make_pair(sums, p, given, chunk, {0, chunk.count}, pair);
  });
}

// If there are few tiles, the workers first share their transformation and then
// the filters.
void convolve_pairs(kernel_context& ctx, const pass& p,
                    const filter_source& filters, const even_cut& chunks) {
  const tile_range all{0, p.tiles.all};
  auto given = transformed(ctx, p, all.count);
  ctx.in_parts(static_cast<std::size_t>(given.units(all)), [&](std::size_t i) {
    given.fill_unit(all, static_cast<index>(i));
  });
  const auto pairs = static_cast<std::size_t>(p.pairs());
  ctx.in_parts(chunks.parts() * pairs, [&](std::size_t i) {
    tile_sums sums(ctx, p, filters);
    const auto chunk = i / pairs;
    make_pair(sums, p, given, all, {chunks.first(chunk), chunks.size(chunk)},
              static_cast<index>(i % pairs));
  });
}

void convolve(kernel_context& ctx, const pass& p, const conv_problem& problem,
              const float* filter) {
  const filter_source filters(p, problem, filter);
  const auto workers =
    static_cast<index>(worthwhile_parts(ctx.workers(), problem));
  const index chunks = ceil_div(p.tiles.all, chunk_tiles);
  if (chunks < workers)
    return convolve_pairs(ctx, p, filters,
                          {p.tiles.all, static_cast<std::size_t>(chunks)});
  convolve_chunks(ctx, p, filters,
                  {p.tiles.all, static_cast<std::size_t>(
                                  ceil_div(chunks, workers) * workers)});
}

bool slides(const window_axis& a) {
  return a.extent == 3 && a.stride == 1 && a.dilation == 1;
}

// Compares multiplications, counted per input channel and vector of output
// channels. Transforming one vector of a tile takes as long as 500
// multiplications; its cost is spread over the channels of the other image.
// Transforming a filter takes as long as 150. In bfloat16, direct convolution
// takes half the time. Measured (Zen 4) with 16 to 512 channels, against direct
// convolution: in float32, 2 tiles without empty pixels are 1.1 to 1.5 times as
// fast, 32 tiles 1.5 to 3 times; in bfloat16 it is 1.05 to 1.7 times.
bool pays(const conv_problem& p, const shape& made, precision factors) {
  const index tiles = winograd_tiling(made).all;
  const index of_tile = winograd_values + 500 / p.in[1] + 500 / p.out[1];
  const index direct = winograd_taps * made[0] * made[2] * made[3];
  return of_tile * tiles + 150
         < (factors == precision::bfloat16 ? direct / 2 : direct);
}

} // namespace

bool fits(conv_direction direction, const conv_problem& p, precision factors) {
  return p.groups == 1 && slides(p.axes[0]) && slides(p.axes[1])
         && winograd_loops_for(p)
         && pays(p, direction == conv_direction::input_gradient ? p.in : p.out,
                 factors);
}

// The widest block that the next reader may want.
std::int64_t block(const conv_problem& p) {
  const bool wide = machine_vectors() == vector_level::v4
                    && p.out[1] % winograd_loops_v4.lanes == 0;
  return wide ? winograd_loops_v4.lanes : winograd_loops_for(p)->lanes;
}

void forward(kernel_context& ctx, const conv_problem& p, stored_values x,
             const float* filter, stored_results out) {
  const winograd_loops& loops = *winograd_loops_for(p);
  const given_images given(ctx, loops, p.in, lie_plain(p, p.in_format), x);
  const winograd_tiling tiles(p.out);
  pass way{loops, view_images(given.at(), p, p.in, p.in_format, tiles, loops),
           view_images(out, p, p.out, image_format{block(p)}, tiles, loops),
           tiles};
  way.given.plane.before_y = p.axes[0].before;
  way.given.plane.before_x = p.axes[1].before;
  convolve(ctx, way, p, filter);
}

// Beyond the pixels of out the gradient is zero, as if it were padded.
void input_gradient(kernel_context& ctx, const conv_problem& p,
                    stored_values dout, const float* filter,
                    stored_results dx) {
  const winograd_loops& loops = *winograd_loops_for(p);
  const given_images given(ctx, loops, p.out, lie_plain(p, p.out_format), dout);
  const bool plain = lie_plain(p, p.in_format);
  tensor copy = ctx.scratch(plain ? p.in.numel() : 0);
  const stored_results made = plain ? copy.data<float>() : dx;
  const winograd_tiling tiles(p.in);
  pass way{loops, view_images(given.at(), p, p.out, p.out_format, tiles, loops),
           view_images(made, p, p.in, p.in_format, tiles, loops), tiles, true};
  way.given.plane.before_y = p.axes[0].extent - 1 - p.axes[0].before;
  way.given.plane.before_x = p.axes[1].extent - 1 - p.axes[1].before;
  convolve(ctx, way, p, filter);
  if (plain)
    copy_from_blocks(ctx, loops, p.in, made.floats(), dx.floats());
}

} // namespace troupe::cpu::winograd_convolution
