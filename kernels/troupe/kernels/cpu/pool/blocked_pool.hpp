// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/plans/pool_plan.hpp>

#include <cstdint>

/// pool2d over images in blocks of 8 or 16 channels (channel_blocks.hpp), for
/// any windows of a plan. A vector holds the channels of one pixel; workers
/// share the planes. NaN and equal maxima are treated as in pool2d.cpp.
namespace troupe::cpu::blocked {

void pool(const kernel_context& ctx, const pool_plan& p, bool max,
          std::int64_t block, stored_values x, stored_results out);

/// Writes every element of `dx`.
void pool_gradient(const kernel_context& ctx, const pool_plan& p, bool max,
                   std::int64_t block, stored_values x, stored_values dout,
                   stored_results dx);

} // namespace troupe::cpu::blocked
