// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>
#include <troupe/kernels/plans/pool_plan.hpp>

#include <limits>

namespace troupe::cpu {

namespace {

// The largest element of a window of a plane, and its position; of equal ones
// the first. A window that covers only padding has none.
struct largest {
  float value = -std::numeric_limits<float>::max();
  std::int32_t index = -1;
};

largest find_largest(const float* x, std::int64_t width,
                     const pool_window& rows, const pool_window& cols) {
  largest best;
  for (std::int64_t h = rows.first; h < rows.last; ++h)
    for (std::int64_t w = cols.first; w < cols.last; ++w)
      if (const float value = x[h * width + w]; value > best.value)
        best = {value, static_cast<std::int32_t>(h * width + w)};
  return best;
}

} // namespace

void run_max_pool2d_with_index(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const pool_plan p = make_pool_plan(pool_options(ctx.attributes()), x.dims());
  tensor out = float_output(ctx, "Out", p.out);
  tensor mask = ctx.output("Mask", p.out, dtype::int32);
  const std::int64_t plane = p.in.numel(2, 4);
  float* value = out.data<float>();
  std::int32_t* index = mask.data<std::int32_t>();
  for (std::int64_t i = 0; i < p.in.numel(0, 2); ++i)
    for (const auto& rows : p.row_windows)
      for (const auto& cols : p.col_windows) {
        const largest best =
          find_largest(x.data<float>() + i * plane, p.in[3], rows, cols);
        *value++ = best.value;
        *index++ = best.index;
      }
}

void run_max_pool2d_with_index_grad(kernel_context& ctx) {
  const shape in = ctx.input("X").dims();
  const tensor dout = float_input(ctx, "Out@GRAD");
  const tensor mask = ctx.input("Mask");
  require_rank("X", in, 4);
  require_shape("Mask", mask.dims(), dout.dims());
  const index_values index(mask, "Mask");
  tensor dx = float_output(ctx, "X@GRAD", in);
  fill(dx.data<float>(), dx.numel(), 0.0f);
  const std::int64_t plane = in.numel(2, 4);
  const std::int64_t windows = dout.dims().numel(2, dout.dims().rank());
  if (dout.dims().numel(0, 2) != in.numel(0, 2))
    throw_shapes("Out@GRAD", dout.dims(), "X", in, "differ in planes");
  for (std::int64_t i = 0; i < dout.numel(); ++i) {
    if (index[i] < -1 || index[i] >= plane)
      throw_index(ctx, "Mask", index[i], plane);
    if (index[i] >= 0)
      dx.data<float>()[i / windows * plane + index[i]] += dout.data<float>()[i];
  }
}

} // namespace troupe::cpu
