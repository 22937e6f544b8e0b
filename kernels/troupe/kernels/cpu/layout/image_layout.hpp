// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <string_view>

namespace troupe::cpu {

/// True for NHWC, false for NCHW and AnyLayout; throws
/// error(invalid_argument) for other values of the attribute.
bool has_channels_last(const attribute_map& attributes, std::string_view name);

/// [N, C, H, W] of [N, H, W, C], and the reverse; as they are otherwise.
shape channels_second(const shape& dims, bool channels_last);
shape channels_in_place(const shape& dims, bool channels_last);

/// A copy of [N, ..., C] as [N, C, ...], and the reverse. Rank 3 at least.
tensor with_channels_second(kernel_context& ctx, const tensor& x);
tensor with_channels_last(kernel_context& ctx, const tensor& x);

} // namespace troupe::cpu
