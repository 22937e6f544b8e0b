// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::cpu {

namespace {

// Calls `act(offset in X, outer index)` for each run of `inner` elements.
template <class Act>
void for_each_run(const axis_view& v, Act act) {
  for (std::int64_t o = 0; o < v.outer; ++o)
    for (std::int64_t e = 0; e < v.extent; ++e)
      act((o * v.extent + e) * v.inner, o);
}

// sums[o, i] = sum over e of a[o, e, i] b[o, e, i]
std::vector<float> products(const axis_view& v, const float* a,
                            const float* b) {
  std::vector<float> sums(static_cast<std::size_t>(v.outer * v.inner));
  for_each_run(v, [&](std::int64_t at, std::int64_t o) {
    float* sum = sums.data() + o * v.inner;
    for (std::int64_t i = 0; i < v.inner; ++i)
      sum[i] += a[at + i] * b[at + i];
  });
  return sums;
}

axis_view view_of(const kernel_context& ctx, const shape& x) {
  return {x, normal_axis(ctx.attributes().get_int("axis", -1), x.rank(), "X")};
}

} // namespace

void run_l2_normalize(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const axis_view v = view_of(ctx, x.dims());
  const float epsilon = ctx.attributes().get_float("epsilon", 1e-10f);
  auto norms = products(v, x.data<float>(), x.data<float>());
  for (float& value : norms)
    value = std::sqrt(value + epsilon);
  if (ctx.has_output("Norm")) {
    shape dims = x.dims();
    dims[normal_axis(ctx.attributes().get_int("axis", -1), dims.rank(), "X")] =
      1;
    tensor out = float_output(ctx, "Norm", dims);
    std::copy(norms.begin(), norms.end(), out.data<float>());
  }
  tensor out = float_output(ctx, "Out", x.dims());
  for_each_run(v, [&](std::int64_t at, std::int64_t o) {
    const float* norm = norms.data() + o * v.inner;
    for (std::int64_t i = 0; i < v.inner; ++i)
      out.data<float>()[at + i] = x.data<float>()[at + i] / norm[i];
  });
}

// dX = (dOut - X sum(X dOut) / norm^2) / norm
void run_l2_normalize_grad(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const tensor norm = float_input(ctx, "Norm");
  const tensor dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), x.dims());
  const axis_view v = view_of(ctx, x.dims());
  if (norm.numel() != v.outer * v.inner)
    throw_shapes("Norm", norm.dims(), "X", x.dims(), "do not go together");
  const auto sums = products(v, x.data<float>(), dout.data<float>());
  tensor dx = float_output(ctx, "X@GRAD", x.dims());
  for_each_run(v, [&](std::int64_t at, std::int64_t o) {
    const float* n = norm.data<float>() + o * v.inner;
    const float* sum = sums.data() + o * v.inner;
    for (std::int64_t i = 0; i < v.inner; ++i)
      dx.data<float>()[at + i] =
        (dout.data<float>()[at + i]
         - x.data<float>()[at + i] * (sum[i] / (n[i] * n[i])))
        / n[i];
  });
}

} // namespace troupe::cpu
