// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// Winograd's F(4x4, 3x3): a tile of 4x4 output pixels is computed from 6x6
/// input pixels. Tile and filter are transformed into 36 values each, products
/// of which are summed over channels and transformed back. Source: Lavin and
/// Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.
constexpr std::int64_t winograd_tile = 4;
constexpr std::int64_t winograd_values = 36;
constexpr std::int64_t winograd_taps = 9;

/// Vectors of result channels that a product may have side by side.
constexpr std::int64_t winograd_columns = 2;

/// `lanes` channels of one image, and how tiles cover the image or what is made
/// of it, row by row.
struct winograd_plane {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t pixel_step = 0; ///< in values
  bool rounded = false;        ///< values are bfloat16 in memory; else float32
  std::int64_t tiles_across = 0;
  /// Rows and columns of the first tile that lie outside of the image; pixels
  /// there are zeros.
  std::int64_t before_y = 0;
  std::int64_t before_x = 0;
};

/// Transformed values, or taps of filters: of vector k, value i lies at
/// [i * step + k * row].
template <class Float>
struct winograd_block {
  Float* at = nullptr;
  std::int64_t step = 0;
  std::int64_t row = 0;
};

/// Factors of a product: values [36, rows, lanes] of each of some blocks of
/// channels.
struct winograd_factor {
  const float* at = nullptr;
  std::int64_t step = 0;       ///< from value to value
  std::int64_t block_step = 0; ///< from block to block of channels
};

/// Loops of Winograd's method for one instruction set. A vector holds `lanes`
/// channels. Products have one or two (`columns`) vectors side by side, and add
/// to what there is if `adds`.
struct winograd_loops {
  std::int64_t lanes;

  /// Tiles [first, first + tiles) of an image: their 6x6 input pixels, or 4x4
  /// of the gradient of what was made of them.
  void (*transform_image)(const winograd_plane& p, const void* x,
                          std::int64_t first, std::int64_t tiles,
                          const winograd_block<float>& to);
  void (*transform_gradient)(const winograd_plane& p, const void* dout,
                             std::int64_t first, std::int64_t tiles,
                             const winograd_block<float>& to);
  /// The 4x4 pixels of such tiles, as far as they lie in the image.
  void (*make_image)(const winograd_plane& p,
                     const winograd_block<const float>& from,
                     std::int64_t first, std::int64_t tiles, void* out);

  void (*transform_filters)(const winograd_block<const float>& from,
                            std::int64_t vectors,
                            const winograd_block<float>& to);
  /// The gradient of filters from that of what they are transformed into.
  void (*make_filters)(const winograd_block<const float>& from,
                       std::int64_t vectors, const winograd_block<float>& to);

  /// to[i][tile] = sum over the channels of `depth` blocks of
  /// image[i][tile][channel] times filters[i][channel].
  void (*multiply)(const winograd_factor& image, std::int64_t tiles,
                   std::int64_t depth,
                   const winograd_block<const float>& filters,
                   std::int64_t columns, const winograd_block<float>& to,
                   bool adds);
  /// to[i][channel] = sum over tiles of image[i][tile][channel] times
  /// gradient[i][tile], for the channels of `depth` blocks.
  void (*multiply_tiles)(const winograd_factor& image, std::int64_t depth,
                         const winograd_factor& gradient, std::int64_t columns,
                         std::int64_t tiles, const winograd_block<float>& to,
                         bool adds);

  /// A square of lanes x lanes values, rows `from_row` and `to_row` apart.
  void (*transpose)(const float* from, std::int64_t from_row, float* to,
                    std::int64_t to_row);
};

extern const winograd_loops winograd_loops_v4; ///< 16 lanes
extern const winograd_loops winograd_loops_v3; ///< 8 lanes

} // namespace troupe::cpu
