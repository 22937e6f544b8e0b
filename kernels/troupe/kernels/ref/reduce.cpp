// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <algorithm>
#include <array>

namespace troupe::ref {

namespace {

struct reduction {
  std::array<bool, shape::max_rank> reduced{};
  shape kept;             ///< the result with extents of 1 where reduced
  shape out;              ///< the result's shape
  std::int64_t count = 1; ///< elements per result

  reduction(const kernel_context& ctx, const shape& dims) : kept(dims) {
    mark(ctx, dims.rank());
    const bool keep = ctx.attributes().get_bool("keep_dim", false);
    std::vector<std::int64_t> extents;
    for (std::size_t i = 0; i < dims.rank(); ++i) {
      if (reduced[i]) {
        count *= dims[i];
        kept[i] = 1;
      }
      if (!reduced[i] || keep)
        extents.push_back(kept[i]);
    }
    out = shape(extents);
  }

  /// The offset in the result of element `offset` of a tensor of `dims`.
  std::int64_t target(std::int64_t offset, const shape& dims) const {
    auto where = coordinates(offset, dims);
    for (std::size_t i = 0; i < dims.rank(); ++i)
      if (reduced[i])
        where[i] = 0;
    return offset_of(where, kept);
  }

private:
  void mark(const kernel_context& ctx, std::size_t rank) {
    const auto axes = ctx.attributes().get_ints("dim", {0});
    const bool all =
      ctx.attributes().get_bool("reduce_all", false) || axes.empty();
    for (std::size_t i = 0; i < rank; ++i)
      reduced[i] = all;
    if (!all)
      for (auto axis : axes)
        reduced[resolve_axis(axis, rank)] = true;
  }
};

double inverse_count(std::int64_t count) {
  return count == 0 ? 0 : 1.0 / static_cast<double>(count);
}

/// Out = factor * sum, dX = factor * dOut; factor is 1/count for means.
void reduce(kernel_context& ctx, bool average) {
  auto x = input(ctx, "X");
  const reduction r(ctx, x.dims);
  array out(r.out);
  for (std::int64_t i = 0; i < x.size(); ++i)
    out[r.target(i, x.dims)] += x[i];
  if (average)
    for (double& value : out.values)
      value *= inverse_count(r.count);
  output(ctx, "Out", out, input_type(ctx, "X"));
}

void reduce_grad(kernel_context& ctx, bool average) {
  auto x = input(ctx, "X"), dout = input(ctx, "Out@GRAD");
  const reduction r(ctx, x.dims);
  require(dout.size() == r.out.numel(), errc::shape_mismatch,
          "Out@GRAD has shape " + to_string(dout.dims) + ", expected "
            + to_string(r.out));
  const double factor = average ? inverse_count(r.count) : 1;
  array dx(x.dims);
  for (std::int64_t i = 0; i < dx.size(); ++i)
    dx[i] = factor * dout[r.target(i, x.dims)];
  output(ctx, "X@GRAD", dx, input_type(ctx, "X"));
}

} // namespace

void mean(kernel_context& ctx) {
  auto x = input(ctx, "X");
  array out(shape{});
  for (double value : x.values)
    out[0] += value;
  out[0] *= inverse_count(x.size());
  output(ctx, "Out", out, input_type(ctx, "X"));
}

void mean_grad(kernel_context& ctx) {
  auto x = input(ctx, "X");
  const double d = input_scalar(ctx, "Out@GRAD");
  output(ctx, "X@GRAD", array(x.dims, d * inverse_count(x.size())),
         input_type(ctx, "X"));
}

void reduce_mean(kernel_context& ctx) {
  reduce(ctx, true);
}
void reduce_mean_grad(kernel_context& ctx) {
  reduce_grad(ctx, true);
}
void reduce_sum(kernel_context& ctx) {
  reduce(ctx, false);
}
void reduce_sum_grad(kernel_context& ctx) {
  reduce_grad(ctx, false);
}

} // namespace troupe::ref
