// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/norm/channel_statistics.hpp>

#include <troupe/kernels/cpu/norm/blocked_statistics.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <algorithm>
#include <vector>

namespace troupe::cpu {

namespace {

// Images: a plane of pixels per sample and channel.

TROUPE_SIMD float centred_squares(const float* x, float mean, std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i)
    total += (x[i] - mean) * (x[i] - mean);
  return total;
}

TROUPE_SIMD float centred_dot(const float* dy, const float* x, float mean,
                              std::int64_t n) {
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i)
    total += dy[i] * (x[i] - mean);
  return total;
}

TROUPE_SIMD void affine_plane(float* y, const float* x, float mean,
                              float factor, float bias, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - mean) * factor + bias;
}

TROUPE_SIMD void combine_plane(float* dx, const float* dy, const float* x,
                               float mean, float dy_factor, float x_factor,
                               float offset, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = dy_factor * dy[i] + x_factor * (x[i] - mean) + offset;
}

struct moments {
  double count = 0.0;
  double mean = 0.0;
  double squares = 0.0; // squared distances from the mean, summed
};

moments plane_moments(const float* x, std::int64_t n) {
  const auto count = static_cast<double>(n);
  const double mean = sum(x, n) / count;
  return {count, mean,
          static_cast<double>(centred_squares(x, static_cast<float>(mean), n))};
}

void join(moments& a, const moments& b) {
  const double count = a.count + b.count;
  const double distance = b.mean - a.mean;
  a.squares += b.squares + distance * distance * a.count * b.count / count;
  a.mean += distance * b.count / count;
  a.count = count;
}

void image_moments(const channel_view& v, const float* x, float* mean,
                   float* variance) {
  for (std::int64_t c = 0; c < v.channels; ++c) {
    moments all;
    for (std::int64_t n = 0; n < v.samples; ++n)
      join(all, plane_moments(x + v.at(n, c), v.pixels));
    mean[c] = static_cast<float>(all.mean);
    variance[c] = static_cast<float>(all.squares / all.count);
  }
}

// Vectors: a row of channels per sample.

constexpr std::int64_t block_rows = 128;

TROUPE_SIMD void centred_squares_rows(float* out, const float* x,
                                      const float* mean, std::int64_t rows,
                                      std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r)
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c)
      out[c] += (x[r * cols + c] - mean[c]) * (x[r * cols + c] - mean[c]);
}

TROUPE_SIMD void centred_dot_rows(float* out, const float* dy, const float* x,
                                  const float* mean, std::int64_t rows,
                                  std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r)
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c)
      out[c] += dy[r * cols + c] * (x[r * cols + c] - mean[c]);
}

TROUPE_SIMD void affine_row(float* y, const float* x, const float* mean,
                            const float* factor, const float* bias,
                            std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - mean[i]) * factor[i] + bias[i];
}

TROUPE_SIMD void combine_row(float* dx, const float* dy, const float* x,
                             const float* mean, const float* dy_factor,
                             const float* x_factor, const float* offset,
                             std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = dy_factor[i] * dy[i] + x_factor[i] * (x[i] - mean[i]) + offset[i];
}

// out = sum over blocks of rows of `block(partial, first_row, rows)`.
template <class Block>
void sum_blocks(const channel_view& v, float* out, Block block) {
  std::vector<float> partial(static_cast<std::size_t>(v.channels));
  fill(out, v.channels, 0.0f);
  for (std::int64_t r = 0; r < v.samples; r += block_rows) {
    std::fill(partial.begin(), partial.end(), 0.0f);
    block(partial.data(), r, std::min(block_rows, v.samples - r));
    accumulate(out, partial.data(), 1.0f, v.channels);
  }
}

void vector_moments(const channel_view& v, const float* x, float* mean,
                    float* variance) {
  const float share = 1.0f / static_cast<float>(v.samples);
  sum_rows(mean, x, v.samples, v.channels);
  scale_add(mean, mean, share, 0.0f, v.channels);
  sum_blocks(v, variance,
             [&](float* partial, std::int64_t first, std::int64_t rows) {
               centred_squares_rows(partial, x + first * v.channels, mean, rows,
                                    v.channels);
             });
  scale_add(variance, variance, share, 0.0f, v.channels);
}

// Calls `plane(channel, offset)` for each plane in the order of memory.
template <class Plane>
void for_each_plane(const channel_view& v, Plane plane) {
  for (std::int64_t n = 0; n < v.samples; ++n)
    for (std::int64_t c = 0; c < v.channels; ++c)
      plane(c, v.at(n, c));
}

} // namespace

void channel_moments(const channel_view& v, stored_values x, float* mean,
                     float* variance) {
  if (v.block > 0)
    blocked::moments(v, x, mean, variance);
  else if (v.pixels == 1)
    vector_moments(v, x.floats(), mean, variance);
  else
    image_moments(v, x.floats(), mean, variance);
}

void channel_affine(const channel_view& v, stored_results to,
                    stored_values from, const float* mean, const float* factor,
                    const float* bias) {
  if (v.block > 0)
    return blocked::affine(v, to, from, mean, factor, bias);
  float* y = to.floats();
  const float* x = from.floats();
  if (v.pixels != 1)
    return for_each_plane(v, [&](std::int64_t c, std::int64_t at) {
      affine_plane(y + at, x + at, mean[c], factor[c], bias[c], v.pixels);
    });
  for (std::int64_t n = 0; n < v.samples; ++n)
    affine_row(y + n * v.channels, x + n * v.channels, mean, factor, bias,
               v.channels);
}

void channel_gradient_sums(const channel_view& v, stored_values from,
                           stored_values dfrom, const float* mean, float* dot,
                           float* total) {
  if (v.block > 0)
    return blocked::gradient_sums(v, from, dfrom, mean, dot, total);
  const float* x = from.floats();
  const float* dy = dfrom.floats();
  if (v.pixels == 1) {
    sum_rows(total, dy, v.samples, v.channels);
    return sum_blocks(
      v, dot, [&](float* partial, std::int64_t first, std::int64_t rows) {
        centred_dot_rows(partial, dy + first * v.channels,
                         x + first * v.channels, mean, rows, v.channels);
      });
  }
  for (std::int64_t c = 0; c < v.channels; ++c) {
    double dots = 0.0;
    double totals = 0.0;
    for (std::int64_t n = 0; n < v.samples; ++n) {
      const std::int64_t at = v.at(n, c);
      dots +=
        static_cast<double>(centred_dot(dy + at, x + at, mean[c], v.pixels));
      totals += sum(dy + at, v.pixels);
    }
    dot[c] = static_cast<float>(dots);
    total[c] = static_cast<float>(totals);
  }
}

void channel_combine(const channel_view& v, stored_results to,
                     stored_values dfrom, stored_values from, const float* mean,
                     const float* dy_factor, const float* x_factor,
                     const float* offset) {
  if (v.block > 0)
    return blocked::combine(v, to, dfrom, from, mean, dy_factor, x_factor,
                            offset);
  float* dx = to.floats();
  const float* dy = dfrom.floats();
  const float* x = from.floats();
  if (v.pixels != 1)
    return for_each_plane(v, [&](std::int64_t c, std::int64_t at) {
      combine_plane(dx + at, dy + at, x + at, mean[c], dy_factor[c],
                    x_factor[c], offset[c], v.pixels);
    });
  for (std::int64_t n = 0; n < v.samples; ++n)
    combine_row(dx + n * v.channels, dy + n * v.channels, x + n * v.channels,
                mean, dy_factor, x_factor, offset, v.channels);
}

} // namespace troupe::cpu
