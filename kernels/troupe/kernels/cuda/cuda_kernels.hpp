// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

namespace troupe::cuda {

/// Kernels for `device_kind::cuda`. They need no driver until they run. Throws
/// error(unsupported_op) for factors of products in another precision than
/// float32.
kernel_table cuda_kernels(precision factors = precision::float32);

} // namespace troupe::cuda
