// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/shape_only.hpp>

#include <array>
#include <string>
#include <vector>

namespace troupe::cuda {

namespace {

/// Which axes of a tensor an op reduces.
struct reduction {
  shape dims; ///< of the tensor
  std::array<bool, shape::max_rank> reduced{};
  shape out;
  std::int64_t kept = 1;    ///< elements of the result
  std::int64_t repeats = 1; ///< elements that each of them adds up

  reduction(const kernel_context& ctx, const shape& of) : dims(of) {
    const auto& a = ctx.attributes();
    const auto axes = a.get_ints("dim", {0});
    const bool all = a.get_bool("reduce_all", false) || axes.empty();
    reduced.fill(all);
    if (!all)
      for (auto axis : axes)
        reduced[normal_axis(axis, dims.rank(), "X")] = true;
    std::vector<std::int64_t> extents;
    for (std::size_t i = 0; i < dims.rank(); ++i) {
      (reduced[i] ? repeats : kept) *= dims[i];
      if (!reduced[i] || a.get_bool("keep_dim", false))
        extents.push_back(reduced[i] ? 1 : dims[i]);
    }
    out = shape(extents);
  }

  /// 1, or of a mean one part.
  float factor(bool averages) const {
    if (!averages)
      return 1;
    return repeats == 0
             ? 0
             : static_cast<float>(1.0 / static_cast<double>(repeats));
  }
};

/// The axes of X, first those that are kept.
sum_repeated::arguments sums_of(const reduction& r) {
  sum_repeated::arguments a{};
  a.count = r.kept;
  a.repeats = r.repeats;
  for (const bool kept : {true, false}) {
    for (std::size_t i = 0; i < r.dims.rank(); ++i)
      if (r.reduced[i] != kept) {
        a.extent[a.axes] = r.dims[i];
        a.step[a.axes++] = r.dims.numel(i + 1, r.dims.rank());
      }
    if (kept)
      a.kept_axes = a.axes;
  }
  return a;
}

void run_reduce(kernel_context& ctx, bool averages) {
  const auto x = float_input(ctx, "X");
  const reduction r(ctx, x.dims());
  auto out = float_output(ctx, "Out", r.out);
  auto a = sums_of(r);
  a.dout = x.data<float>();
  a.to = out.data<float>();
  a.factor = r.factor(averages);
  stream_of(ctx.queue())
    .run<sum_repeated>({static_cast<std::uint32_t>(a.count), most_threads}, a);
}

void run_reduce_grad(kernel_context& ctx, bool averages) {
  const auto x = input_shape(ctx, "X");
  const auto dout = float_input(ctx, "Out@GRAD");
  const reduction r(ctx, x);
  if (dout.numel() != r.kept)
    throw_shape("Out@GRAD", dout.dims(), "expected " + to_string(r.out));
  auto dx = float_output(ctx, "X@GRAD", x);
  scale_repeated::arguments a{
    dout.data<float>(), dx.data<float>(), dx.numel(), r.factor(averages), {}};
  auto step = r.kept;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (!r.reduced[i] && x[i] > 0)
      step /= x[i];
    a.pairs.extent[a.pairs.axes] = x[i];
    a.pairs.x_step[a.pairs.axes++] = r.reduced[i] ? 0 : step;
  }
  stream_of(ctx.queue()).run_for_each<scale_repeated>(a.count, a);
}

} // namespace

void run_reduce_mean(kernel_context& ctx) {
  run_reduce(ctx, true);
}
void run_reduce_mean_grad(kernel_context& ctx) {
  run_reduce_grad(ctx, true);
}
void run_reduce_sum(kernel_context& ctx) {
  run_reduce(ctx, false);
}
void run_reduce_sum_grad(kernel_context& ctx) {
  run_reduce_grad(ctx, false);
}

} // namespace troupe::cuda
