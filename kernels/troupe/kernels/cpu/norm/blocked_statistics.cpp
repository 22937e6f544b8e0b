// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/norm/blocked_statistics.hpp>

#include <troupe/kernels/cpu/simd/block_loops.hpp>

#include <troupe/base/assert.hpp>

#include <algorithm>
#include <vector>

namespace troupe::cpu::blocked {

namespace {

// Pixels whose sums are taken in float. They stay in the first-level cache for
// the second pass; chunks are added up in double.
constexpr std::int64_t chunk = 256;
constexpr int widest = 16;

// Calls `use(first channel, offset, pixels)` for each block of each sample.
// Samples are the inner loop, so that all sums of a block are taken one after
// the other.
template <class Use>
void for_each_plane(const channel_view& v, Use use) {
  for (std::int64_t c = 0; c < v.channels; c += v.block)
    for (std::int64_t n = 0; n < v.samples; ++n)
      use(c, v.at(n, c));
}

// Per channel, the mean of the elements seen so far and the sum of their
// squared distances from it. Source: as for channel_moments.
struct running_moments {
  double count = 0.0;
  double mean[widest] = {};
  double squares[widest] = {};

  void join(std::int64_t block, double more, const float* more_mean,
            const float* more_squares) {
    const double all = count + more;
    for (std::int64_t i = 0; i < block; ++i) {
      const double distance = static_cast<double>(more_mean[i]) - mean[i];
      squares[i] += static_cast<double>(more_squares[i])
                    + distance * distance * count * more / all;
      mean[i] += distance * more / all;
    }
    count = all;
  }
};

} // namespace

void moments(const channel_view& v, stored_values x, float* mean,
             float* variance) {
  const block_loops& loops = block_loops_of(v.block);
  running_moments all;
  for_each_plane(v, [&](std::int64_t c, std::int64_t at) {
    if (at == c * v.pixels)
      all = {};
    for (std::int64_t p = 0; p < v.pixels; p += chunk) {
      const std::int64_t n = std::min(chunk, v.pixels - p);
      float part_mean[widest];
      float part_squares[widest];
      loops.moments(plane_at(x + (at + p * v.block)), n, part_mean,
                    part_squares);
      all.join(v.block, static_cast<double>(n), part_mean, part_squares);
    }
    for (std::int64_t i = 0; i < v.block; ++i) {
      mean[c + i] = static_cast<float>(all.mean[i]);
      variance[c + i] = static_cast<float>(all.squares[i] / all.count);
    }
  });
}

void affine(const channel_view& v, stored_results y, stored_values x,
            const float* mean, const float* factor, const float* bias) {
  TROUPE_ASSERT(y.rounded() == x.rounded());
  const block_loops& loops = block_loops_of(v.block);
  for_each_plane(v, [&](std::int64_t c, std::int64_t at) {
    loops.affine((y + at).data(), plane_at(x + at), v.pixels,
                 {mean + c, factor + c, bias + c});
  });
}

void gradient_sums(const channel_view& v, stored_values x, stored_values dy,
                   const float* mean, float* dot, float* total) {
  const auto channels = static_cast<std::size_t>(v.channels);
  const block_loops& loops = block_loops_of(v.block);
  std::vector<double> dots(channels);
  std::vector<double> totals(channels);
  for_each_plane(v, [&](std::int64_t c, std::int64_t at) {
    for (std::int64_t p = 0; p < v.pixels; p += chunk) {
      const std::int64_t from = at + p * v.block;
      float part_dot[widest];
      float part_total[widest];
      loops.gradient_sums(plane_at(x + from), plane_at(dy + from),
                          std::min(chunk, v.pixels - p), mean + c, part_dot,
                          part_total);
      for (std::int64_t i = 0; i < v.block; ++i) {
        dots[static_cast<std::size_t>(c + i)] +=
          static_cast<double>(part_dot[i]);
        totals[static_cast<std::size_t>(c + i)] +=
          static_cast<double>(part_total[i]);
      }
    }
  });
  std::copy(dots.begin(), dots.end(), dot);
  std::copy(totals.begin(), totals.end(), total);
}

void combine(const channel_view& v, stored_results dx, stored_values dy,
             stored_values x, const float* mean, const float* dy_factor,
             const float* x_factor, const float* offset) {
  TROUPE_ASSERT(dx.rounded() == x.rounded());
  const block_loops& loops = block_loops_of(v.block);
  for_each_plane(v, [&](std::int64_t c, std::int64_t at) {
    loops.combine((dx + at).data(), plane_at(dy + at), plane_at(x + at),
                  v.pixels,
                  {mean + c, dy_factor + c, x_factor + c, offset + c});
  });
}

} // namespace troupe::cpu::blocked
