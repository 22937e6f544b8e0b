// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstdint>

namespace troupe::test {

/// A copy of images [N, C, H, W] in blocks of `block` channels, or of their
/// gradient; other tensors as they are.
tensor in_blocks(const tensor& plain, std::int64_t block, arena& memory);

/// The kernels of `table`, which get all their inputs in blocks, as far as
/// these fit and are no outputs as well.
kernel_table with_blocked_inputs(kernel_table table, std::int64_t block);

} // namespace troupe::test
