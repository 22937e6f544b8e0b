// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/kernel.hpp>

namespace troupe::test {

/// A copy of images [N, C, H, W], or of their gradient, that lies in memory as
/// `format` says, rounded if it does; other tensors as they are.
tensor in_blocks(const tensor& plain, const cpu::image_format& format,
                 arena& memory);

/// The kernels of `table`, which get all their inputs in blocks, as far as
/// these fit and are no outputs as well.
kernel_table with_blocked_inputs(kernel_table table,
                                 const cpu::image_format& format);

/// The same with what fits rounded to bfloat16 first, in whichever numbers it
/// then lies.
kernel_table with_rounded_inputs(kernel_table table,
                                 const cpu::image_format& format);

} // namespace troupe::test
