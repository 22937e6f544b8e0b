// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/pool/blocked_pool.hpp>

#include <troupe/kernels/cpu/conv/plane_buffer.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/simd/block_loops.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <vector>

namespace troupe::cpu::blocked {

namespace {

// The windows of a plan. `row_divisors` holds the divisors of the rows.
block_windows windows_of(const pool_plan& p, bool max,
                         std::vector<float>& row_divisors) {
  for (const auto& rows : p.row_windows)
    row_divisors.push_back(p.divisor(rows));
  return {p.row_windows.data(),
          static_cast<std::int64_t>(p.row_windows.size()),
          p.col_windows.data(),
          static_cast<std::int64_t>(p.col_windows.size()),
          p.in[3],
          max ? nullptr : row_divisors.data(),
          p.col_divisors.data()};
}

// Calls `use(first plane, number of planes)`; workers share the planes.
template <class Use>
void in_planes(const kernel_context& ctx, const pool_plan& p,
               std::int64_t block, Use use) {
  in_rows(ctx, p.in.numel(0, 2) / block, p.in.numel(2, 4) * block, use);
}

} // namespace

void pool(const kernel_context& ctx, const pool_plan& p, bool max,
          std::int64_t block, stored_values x, stored_results out) {
  const block_loops& loops = block_loops_of(block);
  std::vector<float> row_divisors;
  const block_windows windows = windows_of(p, max, row_divisors);
  const std::int64_t in_size = p.in.numel(2, 4) * block;
  const std::int64_t out_size = p.out.numel(2, 4) * block;
  in_planes(ctx, p, block, [&](std::int64_t first, std::int64_t count) {
    plane_buffer given(ctx, in_size, x.rounded());
    plane_buffer made(ctx, out_size, out.rounded());
    for (std::int64_t i = first; i < first + count; ++i) {
      const auto to = out + i * out_size;
      loops.pool(windows, given.read(x + i * in_size), made.begin(to));
      made.wrote(to);
    }
  });
}

void pool_gradient(const kernel_context& ctx, const pool_plan& p, bool max,
                   std::int64_t block, stored_values x, stored_values dout,
                   stored_results dx) {
  const block_loops& loops = block_loops_of(block);
  std::vector<float> row_divisors;
  const block_windows windows = windows_of(p, max, row_divisors);
  const std::int64_t in_size = p.in.numel(2, 4) * block;
  const std::int64_t out_size = p.out.numel(2, 4) * block;
  in_planes(ctx, p, block, [&](std::int64_t first, std::int64_t count) {
    plane_buffer given(ctx, in_size, x.rounded());
    plane_buffer dgiven(ctx, out_size, dout.rounded());
    plane_buffer made(ctx, in_size, dx.rounded());
    for (std::int64_t i = first; i < first + count; ++i) {
      const auto to = dx + i * in_size;
      float* plane = made.begin(to);
      fill(plane, in_size, 0.0f);
      loops.pool_gradient(windows, given.read(x + i * in_size),
                          dgiven.read(dout + i * out_size), plane);
      made.wrote(to);
    }
  });
}

} // namespace troupe::cpu::blocked
