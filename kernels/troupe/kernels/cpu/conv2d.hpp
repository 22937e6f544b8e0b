// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu_kernel_options.hpp>

#include <memory>

namespace troupe::cpu {

/// conv2d and depthwise_conv2d, and their gradients.
std::unique_ptr<kernel> make_conv2d(const attribute_map& attributes,
                                    const cpu_kernel_options& options);
std::unique_ptr<kernel> make_conv2d_grad(const attribute_map& attributes,
                                         const cpu_kernel_options& options);

} // namespace troupe::cpu
