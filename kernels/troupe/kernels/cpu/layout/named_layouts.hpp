// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <memory>
#include <string_view>

namespace troupe::cpu {

/// The layout of a name (`layout::name`) that CPU kernels use for tensors of a
/// shape: that of `channel_blocks` or `filter_blocks`. Null if there is no such
/// layout, or if the shape does not fit.
std::shared_ptr<const layout> find_layout(std::string_view name,
                                          const shape& dims);

} // namespace troupe::cpu
