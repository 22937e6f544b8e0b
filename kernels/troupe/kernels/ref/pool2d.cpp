// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>
#include <troupe/kernels/ref/window.hpp>

#include <algorithm>
#include <limits>

namespace troupe::ref {

namespace {

/// What one output position covers along one axis.
struct span_1d {
  std::int64_t first, last; ///< inside the input: [first, last)
  std::int64_t padded;      ///< length with the covered padding
};

/// Source: Paddle, phi/kernels/funcs/pooling.cc. A window ends at the end of
/// the padded input, where the padding at the end counts as large as that at
/// the beginning. An adaptive window covers
/// [floor(i n / m), ceil((i + 1) n / m)).
struct pooling {
  shape in, out;
  bool max, adaptive, exclusive;
  std::array<sliding, 2> axes;

  pooling(const kernel_context& ctx, const shape& dims) : in(dims) {
    require(in.rank() == 4, errc::shape_mismatch,
            "pool2d takes tensors of rank 4, not " + to_string(in));
    const auto& a = ctx.attributes();
    const auto type = a.get_string("pooling_type", "max");
    require(type == "max" || type == "avg", errc::invalid_argument,
            "unknown pooling_type " + type);
    max = type == "max";
    exclusive = a.get_bool("exclusive", true);
    const bool global = a.get_bool("global_pooling", false);
    adaptive = !global && a.get_bool("adaptive", false);
    if (global)
      out = one_window();
    else
      out = many_windows(a);
  }

  span_1d window(std::size_t axis, std::int64_t i) const {
    const auto n = in[axis + 2], m = out[axis + 2];
    if (adaptive) {
      const auto first = i * n / m, last = ((i + 1) * n + m - 1) / m;
      return {first, last, last - first};
    }
    const auto& s = axes[axis];
    const auto start = i * s.stride - s.before;
    const auto end = std::min(start + s.extent, n + s.before);
    const auto first = std::max<std::int64_t>(start, 0);
    return {first, std::max(first, std::min(end, n)), end - start};
  }

  /// Calls `f(output offset, window of input offsets, divisor)`.
  template <class Function>
  void for_each_window(Function f) const {
    std::vector<std::int64_t> elements;
    const auto count = out.numel();
    for (std::int64_t o = 0; o < count; ++o) {
      const auto at = coordinates(o, out);
      const auto rows = window(0, at[2]), columns = window(1, at[3]);
      elements.clear();
      for (auto h = rows.first; h < rows.last; ++h)
        for (auto w = columns.first; w < columns.last; ++w)
          elements.push_back(offset_of({at[0], at[1], h, w}, in));
      const auto inside = static_cast<std::int64_t>(elements.size());
      const auto divisor = exclusive ? inside : rows.padded * columns.padded;
      f(o, elements, static_cast<double>(std::max<std::int64_t>(divisor, 1)));
    }
  }

private:
  /// One window over the whole input, whatever ksize, strides and paddings say.
  shape one_window() {
    axes[0].extent = in[2];
    axes[1].extent = in[3];
    return {in[0], in[1], 1, 1};
  }

  shape many_windows(const attribute_map& a) {
    const auto ksize = a.get_ints("ksize", {});
    require(ksize.size() == 2 && ksize[0] > 0 && ksize[1] > 0,
            errc::invalid_argument, "ksize needs two positive values");
    if (adaptive)
      return {in[0], in[1], ksize[0], ksize[1]};
    axes = read_sliding(a, {in[2], in[3]}, {ksize[0], ksize[1]});
    const bool up = a.get_bool("ceil_mode", false);
    return {in[0], in[1], axes[0].positions(in[2], up),
            axes[1].positions(in[3], up)};
  }
};

/// The position of the first largest element of a window; -1 if it is empty.
std::int64_t find_max(const array& x, const std::vector<std::int64_t>& window) {
  std::int64_t best = -1;
  for (auto i : window)
    if (best < 0 || x[i] > x[best])
      best = i;
  return best;
}

} // namespace

void pool2d(kernel_context& ctx) {
  auto x = input(ctx, "X");
  const pooling p(ctx, x.dims);
  array out(p.out);
  p.for_each_window([&](auto o, const auto& window, double divisor) {
    if (p.max) {
      const auto best = find_max(x, window);
      out[o] = best < 0 ? -std::numeric_limits<float>::max() : x[best];
    } else {
      for (auto i : window)
        out[o] += x[i] / divisor;
    }
  });
  output(ctx, "Out", out, input_type(ctx, "X"));
}

void pool2d_grad(kernel_context& ctx) {
  // The gradient of a maximum goes to the first element with that value in the
  // window.
  auto x = input(ctx, "X"), d = input(ctx, "Out@GRAD");
  const pooling p(ctx, x.dims);
  require_same("Out@GRAD", d.dims, p.out);
  array dx(x.dims);
  p.for_each_window([&](auto o, const auto& window, double divisor) {
    if (p.max) {
      if (const auto best = find_max(x, window); best >= 0)
        dx[best] += d[o];
    } else {
      for (auto i : window)
        dx[i] += d[o] / divisor;
    }
  });
  output(ctx, "X@GRAD", dx, input_type(ctx, "X"));
}

} // namespace troupe::ref
