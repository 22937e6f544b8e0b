// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <algorithm>
#include <numeric>

namespace troupe::ref {

namespace {

/// Positions of a line's elements, best first; equal elements keep their order.
std::vector<std::int64_t> ranking(const std::vector<double>& line,
                                  bool largest) {
  std::vector<std::int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    const double x = line[static_cast<std::size_t>(a)];
    const double y = line[static_cast<std::size_t>(b)];
    return largest ? x > y : x < y;
  });
  return order;
}

} // namespace

void top_k_v2(kernel_context& ctx) {
  auto x = input(ctx, "X");
  const auto& a = ctx.attributes();
  const auto axis = resolve_axis(a.get_int("axis", -1), x.dims.rank());
  const auto k = a.get_int("k", 1);
  const bool largest = a.get_bool("largest", true);
  const auto from = around(x.dims, axis);
  require(k > 0 && k <= from.extent, errc::out_of_range,
          "top " + std::to_string(k) + " of " + std::to_string(from.extent));
  auto dims = x.dims;
  dims[axis] = k;
  const auto to = around(dims, axis);
  array out(dims), indices(dims);
  for (std::int64_t o = 0; o < from.outer; ++o)
    for (std::int64_t i = 0; i < from.inner; ++i) {
      std::vector<double> line;
      for (std::int64_t e = 0; e < from.extent; ++e)
        line.push_back(x[from.at(o, e, i)]);
      const auto order = ranking(line, largest);
      for (std::int64_t e = 0; e < k; ++e) {
        const auto best = order[static_cast<std::size_t>(e)];
        out[to.at(o, e, i)] = line[static_cast<std::size_t>(best)];
        indices[to.at(o, e, i)] = static_cast<double>(best);
      }
    }
  output(ctx, "Out", out, input_type(ctx, "X"));
  output(ctx, "Indices", indices, dtype::int64);
}

void accuracy(kernel_context& ctx) {
  // A sample is right if its label is among its k best classes.
  auto indices = input(ctx, "Indices"), label = input(ctx, "Label");
  require(indices.dims.rank() == 2, errc::shape_mismatch,
          "Indices must be [samples, k], not " + to_string(indices.dims));
  const auto samples = indices.dims[0], k = indices.dims[1];
  require(label.size() == samples, errc::shape_mismatch,
          "Label has shape " + to_string(label.dims) + " for "
            + std::to_string(samples) + " samples");
  double right = 0;
  for (std::int64_t n = 0; n < samples; ++n)
    for (std::int64_t i = 0; i < k; ++i)
      if (indices[n * k + i] == label[n]) {
        ++right;
        break;
      }
  const auto total = static_cast<double>(samples);
  output(ctx, "Accuracy", array(shape{}, samples == 0 ? 0 : right / total),
         dtype::float32);
  output(ctx, "Correct", array(shape{}, right), dtype::int32);
  output(ctx, "Total", array(shape{}, total), dtype::int32);
}

} // namespace troupe::ref
