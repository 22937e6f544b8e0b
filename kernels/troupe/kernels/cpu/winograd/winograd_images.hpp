// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/cpu/reduce/even_cut.hpp>
#include <troupe/kernels/cpu/winograd/winograd_loops.hpp>
#include <troupe/kernels/kernel.hpp>

#include <algorithm>
#include <cstdint>

namespace troupe::cpu {

struct conv_problem;
struct image_format;

/// The widest loops that this machine supports and that fit the problem: all
/// channel counts and block sizes must be multiples of their lanes, 16 with
/// AVX-512 and 8 with AVX2. Null if none fit.
const winograd_loops* winograd_loops_for(const conv_problem& p);

/// The tiles that cover images [samples, channels, height, width].
struct winograd_tiling {
  explicit winograd_tiling(const shape& pixels)
    : across(ceil_div(pixels[3], winograd_tile)),
      per_sample(across * ceil_div(pixels[2], winograd_tile)),
      all(pixels[0] * per_sample) {}

  std::int64_t across;
  std::int64_t per_sample;
  std::int64_t all;
};

/// Images as Winograd's loops see them: vectors of channels, and the tiles of
/// one image. `Stored` is stored_values or stored_results.
template <class Stored>
struct winograd_images {
  Stored at;
  std::int64_t lanes = 0;
  std::int64_t sample_step = 0;
  std::int64_t vectors_of_pixel = 0; ///< adjacent vectors of one pixel
  /// elements between such groups of vectors
  std::int64_t vectors_step = 0;
  std::int64_t first = 0;  ///< the vector of channels that is block 0
  std::int64_t blocks = 0; ///< how many vectors of channels
  winograd_plane plane;

  auto image(std::int64_t sample, std::int64_t block) const noexcept {
    const std::int64_t vector = first + block;
    return (at
            + (sample * sample_step + vector / vectors_of_pixel * vectors_step
               + vector % vectors_of_pixel * lanes))
      .data();
  }
};

/// Whether the problem's images in this format have one plane per channel.
bool lie_plain(const conv_problem& p, const image_format& format) noexcept;

/// How many channels of a pixel are adjacent in the problem's images of `dims`
/// in this format: a block, all if channels are last, or one vector in the
/// blocked copy of plain images.
std::int64_t side_by_side(const conv_problem& p, const shape& dims,
                          const image_format& format,
                          const winograd_loops& loops) noexcept;

/// A view of such images at `at`, as tiles without padding.
template <class Stored>
winograd_images<Stored>
view_images(Stored at, const conv_problem& p, const shape& dims,
            const image_format& format, const winograd_tiling& tiles,
            const winograd_loops& loops) {
  const std::int64_t pixels = dims[2] * dims[3];
  const std::int64_t together = side_by_side(p, dims, format, loops);
  return {.at = at,
          .lanes = loops.lanes,
          .sample_step = dims[1] * pixels,
          .vectors_of_pixel = together / loops.lanes,
          .vectors_step = pixels * together,
          .blocks = dims[1] / loops.lanes,
          .plane = {.height = dims[2],
                    .width = dims[3],
                    .pixel_step = together,
                    .rounded = at.rounded(),
                    .tiles_across = tiles.across}};
}

/// Copy plain images of `dims` into blocks of one vector of channels, and back.
/// The workers share the work.
void copy_into_blocks(kernel_context& ctx, const winograd_loops& loops,
                      const shape& dims, const float* from, float* to);
void copy_from_blocks(kernel_context& ctx, const winograd_loops& loops,
                      const shape& dims, const float* from, float* to);

/// Images that are read. Plain ones are copied into blocks.
class given_images {
public:
  given_images(kernel_context& ctx, const winograd_loops& loops,
               const shape& dims, bool plain, stored_values at)
    : copy_(ctx.scratch(plain ? dims.numel() : 0)), at_(at) {
    if (!plain)
      return;
    copy_into_blocks(ctx, loops, dims, at.floats(), copy_.data<float>());
    at_ = copy_.data<float>();
  }

  const stored_values& at() const noexcept { return at_; }

private:
  tensor copy_;
  stored_values at_;
};

/// Tiles [first, first + count), counted through the images of all samples.
struct tile_range {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// For each sample in the range, calls `use(sample, tiles of its image, number
/// of tiles of earlier samples)`.
template <class Use>
void for_each_sample(tile_range tiles, std::int64_t tiles_per_sample, Use use) {
  for (std::int64_t done = 0; done < tiles.count;) {
    const auto at = tiles.first + done;
    const tile_range part{
      at % tiles_per_sample,
      std::min(tiles_per_sample - at % tiles_per_sample, tiles.count - done)};
    use(at / tiles_per_sample, part, done);
    done += part.count;
  }
}

/// The transformed tiles of images: [blocks, 36, tiles, lanes]. A gap of one
/// vector follows the tiles of each of the 36 values, so that the values of a
/// tile do not fall into the same cache set. Thread rule: any number of threads
/// fill different units.
class transformed_tiles {
public:
  using transform = void (*)(const winograd_plane&, const void*, std::int64_t,
                             std::int64_t, const winograd_block<float>&);

  /// Allocates room for `most_tiles`.
  transformed_tiles(const kernel_context& ctx, transform loop,
                    std::int64_t lanes,
                    const winograd_images<stored_values>& images,
                    std::int64_t tiles_per_sample, std::int64_t most_tiles);

  std::int64_t blocks() const noexcept { return images_.blocks; }

  /// Transforms tiles and replaces the previous ones.
  void fill(tile_range tiles) {
    for (std::int64_t i = 0; i < units(tiles); ++i)
      fill_unit(tiles, i);
  }
  /// The same in units of some 10 us: their number, and one of them.
  std::int64_t units(tile_range tiles) const noexcept;
  void fill_unit(tile_range tiles, std::int64_t unit);

  /// The values of block `block`, from tile `tile` on.
  winograd_factor from(std::int64_t block,
                       std::int64_t tile = 0) const noexcept {
    const auto values = place(block, tile);
    return {values.at, values.step, block_step()};
  }

private:
  std::int64_t block_step() const noexcept { return winograd_values * step_; }
  winograd_block<float> place(std::int64_t block,
                              std::int64_t tile) const noexcept {
    return {at_ + block * block_step() + tile * lanes_, step_, lanes_};
  }

  transform loop_;
  winograd_images<stored_values> images_;
  std::int64_t tiles_per_sample_;
  std::int64_t lanes_;
  std::int64_t step_;
  tensor memory_;
  float* at_;
};

} // namespace troupe::cpu
