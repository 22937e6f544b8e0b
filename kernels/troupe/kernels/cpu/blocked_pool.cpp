// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/blocked_pool.hpp>

#include <troupe/kernels/cpu/block_loops.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

#include <vector>

namespace troupe::cpu::blocked {

namespace {

// The windows of a plan; `row_divisors` has room for them.
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

} // namespace

void pool(const pool_plan& p, bool max, std::int64_t block, const float* x,
          float* out) {
  const block_loops& loops = block_loops_of(block);
  std::vector<float> row_divisors;
  const block_windows windows = windows_of(p, max, row_divisors);
  const std::int64_t in_size = p.in.numel(2, 4) * block;
  const std::int64_t out_size = p.out.numel(2, 4) * block;
  for (std::int64_t i = 0; i < p.in.numel(0, 2) / block; ++i)
    loops.pool(windows, x + i * in_size, out + i * out_size);
}

void pool_gradient(const pool_plan& p, bool max, std::int64_t block,
                   const float* x, const float* dout, float* dx) {
  const block_loops& loops = block_loops_of(block);
  std::vector<float> row_divisors;
  const block_windows windows = windows_of(p, max, row_divisors);
  const std::int64_t in_size = p.in.numel(2, 4) * block;
  const std::int64_t out_size = p.out.numel(2, 4) * block;
  for (std::int64_t i = 0; i < p.in.numel(0, 2) / block; ++i) {
    fill(dx + i * in_size, in_size, 0.0f);
    loops.pool_gradient(windows, x + i * in_size, dout + i * out_size,
                        dx + i * in_size);
  }
}

} // namespace troupe::cpu::blocked
