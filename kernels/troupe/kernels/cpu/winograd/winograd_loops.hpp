// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// Winograd's F(4x4, 3x3): a tile of 4x4 output pixels is computed from 6x6
/// input pixels. Tiles and filters are transformed into 36 values each. Their
/// products are summed over channels and transformed back. Source: Lavin and
/// Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.
constexpr std::int64_t winograd_tile = 4;
constexpr std::int64_t winograd_values = 36;
constexpr std::int64_t winograd_taps = 9;

/// The most vectors of result channels that a product computes side by side.
constexpr std::int64_t winograd_columns = 2;

/// `lanes` channels of one image, and how tiles cover, row by row, the image or
/// the result that is computed from it.
struct winograd_plane {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t pixel_step = 0; ///< in values
  bool rounded = false;        ///< values are bfloat16 in memory; else float32
  std::int64_t tiles_across = 0;
  /// How many rows and columns of the first tile lie outside of the image.
  /// Pixels there are zeros.
  std::int64_t before_y = 0;
  std::int64_t before_x = 0;
};

/// Transformed values, or taps of filters: value i of vector k is at [i * step
/// + k * row].
template <class Float>
struct winograd_block {
  Float* at = nullptr;
  std::int64_t step = 0;
  std::int64_t row = 0;
};

/// A factor of a product: values [36, rows, lanes] for each of several blocks
/// of channels.
struct winograd_factor {
  const float* at = nullptr;
  std::int64_t step = 0;       ///< from value to value
  std::int64_t block_step = 0; ///< from block to block of channels
};

/// Loops of Winograd's method for one instruction set. A vector holds `lanes`
/// channels. A product computes one or two (`columns`) vectors side by side. If
/// it `adds`, it adds to the sums that are there.
struct winograd_loops {
  std::int64_t lanes;

  /// Transforms tiles [first, first + tiles) of an image: the 6x6 input pixels,
  /// or the 4x4 pixels of the result's gradient.
  void (*transform_image)(const winograd_plane& p, const void* x,
                          std::int64_t first, std::int64_t tiles,
                          const winograd_block<float>& to);
  void (*transform_gradient)(const winograd_plane& p, const void* dout,
                             std::int64_t first, std::int64_t tiles,
                             const winograd_block<float>& to);
  /// Writes the 4x4 pixels of such tiles that lie inside the image.
  void (*make_image)(const winograd_plane& p,
                     const winograd_block<const float>& from,
                     std::int64_t first, std::int64_t tiles, void* out);

  void (*transform_filters)(const winograd_block<const float>& from,
                            std::int64_t vectors,
                            const winograd_block<float>& to);
  /// The gradient of filters from the gradient of the transformed filters.
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

  /// Transposes lanes x lanes values; rows are `from_row` and `to_row` apart.
  void (*transpose)(const float* from, std::int64_t from_row, float* to,
                    std::int64_t to_row);
};

extern const winograd_loops winograd_loops_v4; ///< 16 lanes
extern const winograd_loops winograd_loops_v3; ///< 8 lanes

} // namespace troupe::cpu
