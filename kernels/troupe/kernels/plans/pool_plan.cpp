// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/plans/pool_plan.hpp>

#include <troupe/kernels/arguments.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>

namespace troupe {

namespace {

// Adjacent windows of one size: adaptive pooling whose output divides the
// input.
window_axis tiling(std::int64_t length, std::int64_t count) {
  const std::int64_t extent = length / count;
  return {length, extent, extent, 1, 0, 0};
}

std::array<window_axis, 2> axes_of(const pool_options& o, const shape& in) {
  if (o.global)
    return {tiling(in[2], 1), tiling(in[3], 1)};
  if (o.adaptive)
    return {tiling(in[2], o.ksize[0]), tiling(in[3], o.ksize[1])};
  return read_window(o.attributes, {in[2], in[3]}, {o.ksize[0], o.ksize[1]});
}

pool_window sliding_window(const window_axis& a, std::int64_t i) {
  const std::int64_t start = i * a.stride - a.before;
  const std::int64_t end = std::min(start + a.extent, a.length + a.before);
  const std::int64_t first = std::max<std::int64_t>(start, 0);
  return {first, std::max(first, std::min(end, a.length)), end - start};
}

std::vector<pool_window> sliding_windows(const window_axis& a,
                                         std::int64_t count) {
  std::vector<pool_window> windows;
  for (std::int64_t i = 0; i < count; ++i)
    windows.push_back(sliding_window(a, i));
  return windows;
}

std::vector<pool_window> adaptive_windows(std::int64_t n, std::int64_t m) {
  std::vector<pool_window> windows;
  for (std::int64_t i = 0; i < m; ++i) {
    const std::int64_t first = i * n / m;
    const std::int64_t last = ((i + 1) * n + m - 1) / m;
    windows.push_back({first, last, last - first});
  }
  return windows;
}

void plan_adaptive(const pool_options& o, pool_plan& p) {
  p.irregular = true;
  p.out = {p.in[0], p.in[1], o.ksize[0], o.ksize[1]};
  p.row_windows = adaptive_windows(p.in[2], o.ksize[0]);
  p.col_windows = adaptive_windows(p.in[3], o.ksize[1]);
}

bool halves(const window_axis& a, std::int64_t count) {
  return a.extent == 2 && a.stride == 2 && a.before == 0
         && a.length == 2 * count;
}

void plan_sliding(const pool_options& o, pool_plan& p) {
  const auto axes = axes_of(o, p.in);
  const std::int64_t rows = axes[0].positions(o.ceil_mode);
  const std::int64_t cols = axes[1].positions(o.ceil_mode);
  p.out = {p.in[0], p.in[1], rows, cols};
  p.rows = axes[0];
  p.cols = axes[1];
  p.row_windows = sliding_windows(axes[0], rows);
  p.col_windows = sliding_windows(axes[1], cols);
  const std::int64_t reach = (cols - 1) * p.cols.stride + p.cols.extent;
  p.row_size = std::max(reach, p.cols.before + p.in[3]);
  p.pads = p.row_size > p.in[3];
  p.whole = rows == 1 && cols == 1 && axes[0].extent == p.in[2]
            && axes[1].extent == p.in[3] && axes[0].before == 0
            && axes[1].before == 0;
  p.tiles_2x2 = halves(axes[0], rows) && halves(axes[1], cols);
}

} // namespace

pool_options::pool_options(const attribute_map& from)
  : global(from.get_bool("global_pooling", false)),
    adaptive(!global && from.get_bool("adaptive", false)),
    exclusive(from.get_bool("exclusive", true)),
    ceil_mode(!adaptive && !global && from.get_bool("ceil_mode", false)),
    ksize(from.get_ints("ksize", {})), attributes(from) {
  const std::string type = from.get_string("pooling_type", "max");
  if (type != "max" && type != "avg")
    throw error(errc::invalid_argument,
                "attribute pooling_type is " + type + ", not max or avg");
  max = type == "max";
  if (!global
      && (ksize.size() != 2 || ksize[0] < 1 || ksize[1] < 1
          || std::max(ksize[0], ksize[1]) > largest_window))
    throw error(errc::invalid_argument,
                "attribute ksize needs two positive values of at most 2^20");
}

pool_plan make_pool_plan(const pool_options& options, const shape& in) {
  require_rank("X", in, 4);
  if (in[2] < 1 || in[3] < 1)
    throw_shape("X", in, "has no pixels");
  pool_plan p;
  p.in = in;
  p.exclusive = options.exclusive;
  if (options.adaptive
      && (in[2] % options.ksize[0] != 0 || in[3] % options.ksize[1] != 0))
    plan_adaptive(options, p);
  else
    plan_sliding(options, p);
  for (const auto& window : p.col_windows)
    p.col_divisors.push_back(p.divisor(window));
  return p;
}

} // namespace troupe
