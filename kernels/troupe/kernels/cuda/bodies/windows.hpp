// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/body.hpp>

#include <cfloat>

namespace troupe::cuda {

/// A kernel that slides along one axis of images.
struct sliding {
  std::int64_t length;    ///< of the images
  std::int64_t positions; ///< of the kernel
  std::int64_t extent;    ///< of the kernel
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t before; ///< padding

  /// Where element `e` of the kernel at position `p` lies; -1: in padding.
  TROUPE_BODY std::int64_t source(std::int64_t p, std::int64_t e) const {
    const auto at = p * stride - before + e * dilation;
    return at < length ? at : -1;
  }
  /// The position at which element `e` of the kernel lies on `at`; -1: none.
  TROUPE_BODY std::int64_t position(std::int64_t at, std::int64_t e) const {
    const auto first = at + before - e * dilation;
    if (first < 0 || first % stride != 0 || first / stride >= positions)
      return -1;
    return first / stride;
  }
};

/// A convolution of images `[images, channels, rows.length, columns.length]` as
/// a product of matrices: `unfolded` has a row for each channel and element of
/// the kernel, and a column for each position.
struct unfolding {
  std::int64_t images;
  std::int64_t channels;
  sliding rows;
  sliding columns;
  std::int64_t image_step; ///< elements between images of `unfolded`
  std::int64_t row_step;   ///< and between rows
};

/// Writes what the kernel covers at each position; zeros for padding. A thread
/// per channel and position, so that divisions are few, and neighbours write
/// side by side.
struct unfold {
  static constexpr const char* name = "conv2d";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    float* unfolded;
    std::int64_t count; ///< images * channels * positions
    unfolding by;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const auto& h = a.by.rows;
    const auto& w = a.by.columns;
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const auto p = i % w.positions, q = i / w.positions % h.positions;
      const auto plane = i / w.positions / h.positions;
      const auto image = plane / a.by.channels;
      const auto channel = plane % a.by.channels;
      const auto* from = a.x + plane * h.length * w.length;
      auto* to = a.unfolded + image * a.by.image_step + q * w.positions + p
                 + channel * h.extent * w.extent * a.by.row_step;
      for (std::int64_t e = 0; e < h.extent; ++e)
        for (std::int64_t f = 0; f < w.extent; ++f, to += a.by.row_step) {
          const auto y = h.source(q, e), x = w.source(p, f);
          *to = y < 0 || x < 0 ? 0.0f : from[y * w.length + x];
        }
    }
  }
};

/// The gradient of `unfold`: each element of the images is the sum of those of
/// `unfolded` that it was copied to.
struct fold {
  static constexpr const char* name = "conv2d_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* unfolded;
    float* x;
    std::int64_t count; ///< elements of the images
    unfolding by;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.x[i] = sum_for(a, i);
  }

  TROUPE_BODY static float sum_for(const arguments& a, std::int64_t i) {
    const auto& h = a.by.rows;
    const auto& w = a.by.columns;
    const auto x = i % w.length, y = i / w.length % h.length;
    const auto plane = i / w.length / h.length;
    const auto channel = plane % a.by.channels;
    const auto* image = a.unfolded + plane / a.by.channels * a.by.image_step;
    float sum = 0;
    for (std::int64_t e = 0; e < h.extent; ++e) {
      const auto q = h.position(y, e);
      for (std::int64_t f = 0; q >= 0 && f < w.extent; ++f) {
        const auto row = (channel * h.extent + e) * w.extent + f;
        const auto p = w.position(x, f);
        if (p >= 0)
          sum += image[row * a.by.row_step + q * w.positions + p];
      }
    }
    return sum;
  }
};

/// What windows of pool2d cover along one axis: [first, last) of the images.
/// Source: Paddle, phi/kernels/funcs/pooling.cc. A window ends at the end of
/// the padded images, where the padding at the end counts as large as that at
/// the beginning. An adaptive window covers
/// [floor(i n / m), ceil((i + 1) n / m)).
struct pooled_axis {
  std::int64_t length; ///< of the images
  std::int64_t count;  ///< windows
  std::int64_t extent;
  std::int64_t stride;
  std::int64_t before; ///< padding
  bool adaptive;

  TROUPE_BODY std::int64_t first(std::int64_t i) const {
    const auto start = adaptive ? i * length / count : i * stride - before;
    return start < 0 ? 0 : start;
  }
  TROUPE_BODY std::int64_t last(std::int64_t i) const {
    const auto end = padded_end(i);
    const auto found = end < length ? end : length;
    return found < first(i) ? first(i) : found;
  }
  /// Length of the window with the padding that it covers.
  TROUPE_BODY std::int64_t padded(std::int64_t i) const {
    return padded_end(i) - (adaptive ? first(i) : i * stride - before);
  }
  TROUPE_BODY std::int64_t padded_end(std::int64_t i) const {
    if (adaptive)
      return ((i + 1) * length + count - 1) / count;
    const auto end = i * stride - before + extent;
    return end < length + before ? end : length + before;
  }

  ///@{
  /// Windows [first_over, last_over) may cover `at`; others do not.
  TROUPE_BODY std::int64_t first_over(std::int64_t at) const {
    if (adaptive)
      return at * count / length;
    const auto before_it = at + before - extent;
    return before_it < 0 ? 0 : before_it / stride + 1;
  }
  TROUPE_BODY std::int64_t last_over(std::int64_t at) const {
    const auto end = adaptive ? ((at + 1) * count + length - 1) / length
                              : (at + before) / stride + 1;
    return end < count ? end : count;
  }
  ///@}
  TROUPE_BODY bool covers(std::int64_t i, std::int64_t at) const {
    return at >= first(i) && at < last(i);
  }
};

/// A window of planes `[rows.length, columns.length]`.
struct pooling {
  pooled_axis rows;
  pooled_axis columns;
  bool takes_max;
  bool exclusive; ///< means do not count padding

  TROUPE_BODY float divisor(std::int64_t q, std::int64_t p) const {
    const auto inside =
      (rows.last(q) - rows.first(q)) * (columns.last(p) - columns.first(p));
    const auto found = exclusive ? inside : rows.padded(q) * columns.padded(p);
    return found > 1 ? static_cast<float>(found) : 1.0f;
  }
  /// The first largest element of a window, or a NaN; -1 if the window is in
  /// padding.
  TROUPE_BODY std::int64_t best(const float* plane, std::int64_t q,
                                std::int64_t p) const {
    std::int64_t found = -1;
    for (auto y = rows.first(q); y < rows.last(q); ++y)
      for (auto x = columns.first(p); x < columns.last(p); ++x) {
        const auto i = y * columns.length + x;
        if (found < 0 || plane[i] > plane[found] || plane[i] != plane[i])
          found = i;
      }
    return found;
  }
};

/// out: the maximum or the mean of each window
struct pool {
  static constexpr const char* name = "pool2d";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x; ///< [planes, rows.length, columns.length]
    float* out;     ///< [planes, rows.count, columns.count]; null: no result
    std::int32_t* best; ///< like out: where the maximum is; null: not wanted
    std::int64_t count; ///< of windows
    pooling by;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const auto& h = a.by.rows;
    const auto& w = a.by.columns;
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const auto p = i % w.count, q = i / w.count % h.count;
      const auto* plane = a.x + i / w.count / h.count * h.length * w.length;
      const auto best = a.by.takes_max ? a.by.best(plane, q, p) : -1;
      if (a.best)
        a.best[i] = static_cast<std::int32_t>(best);
      if (!a.out)
        continue;
      if (!a.by.takes_max)
        a.out[i] = sum_of(a, plane, q, p) / a.by.divisor(q, p);
      else
        a.out[i] = best < 0 ? -FLT_MAX : plane[best];
    }
  }

  TROUPE_BODY static float sum_of(const arguments& a, const float* plane,
                                  std::int64_t q, std::int64_t p) {
    float sum = 0;
    for (auto y = a.by.rows.first(q); y < a.by.rows.last(q); ++y)
      for (auto x = a.by.columns.first(p); x < a.by.columns.last(p); ++x)
        sum += plane[y * a.by.columns.length + x];
    return sum;
  }
};

/// The gradient of `pool`, which noted where the maxima are. A thread per
/// element of the images adds up what the windows over it give, in their order.
struct pool_gradient {
  static constexpr const char* name = "pool2d_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* dout;
    const std::int32_t* best; ///< for maxima
    float* dx;
    std::int64_t count; ///< elements of the images
    pooling by;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.dx[i] = sum_for(a, i);
  }

  TROUPE_BODY static float sum_for(const arguments& a, std::int64_t i) {
    const auto& h = a.by.rows;
    const auto& w = a.by.columns;
    const auto x = i % w.length, y = i / w.length % h.length;
    const auto first = i / w.length / h.length * h.count * w.count;
    float sum = 0;
    for (auto q = h.first_over(y); q < h.last_over(y); ++q)
      for (auto p = w.first_over(x); p < w.last_over(x); ++p) {
        const auto window = first + q * w.count + p;
        if (a.by.takes_max)
          sum += a.best[window] == y * w.length + x ? a.dout[window] : 0.0f;
        else if (h.covers(q, y) && w.covers(p, x))
          sum += a.dout[window] / a.by.divisor(q, p);
      }
    return sum;
  }
};

} // namespace troupe::cuda
