// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <string_view>

namespace troupe::cpu {

/// The dims [N, C, H, W] of [N, H, W, C] if `channels_last`, and the reverse;
/// else unchanged.
shape channels_second(const shape& dims, bool channels_last);
shape channels_in_place(const shape& dims, bool channels_last);

/// Copies [N, ..., C] to [N, C, ...], and the reverse. The rank is at least 3.
tensor with_channels_second(kernel_context& ctx, const tensor& x);
tensor with_channels_last(kernel_context& ctx, const tensor& x);

} // namespace troupe::cpu
