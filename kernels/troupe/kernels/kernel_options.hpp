// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

namespace troupe {

/// What a device's kernels may do to be fast.
struct kernel_options {
  /// Allows Winograd's method for 3x3 convolutions. On CPUs with AVX2 or
  /// AVX-512 it is two to three times as fast, but rounding errors are about
  /// ten times as large.
  bool winograd = true;
  /// Number format of the factors of matrix products and convolutions.
  precision factors = precision::float32;
};

/// Kernels of CPU devices with options. Throws error(unsupported_op) if this
/// processor does not support the precision.
kernel_table cpu_kernels(const kernel_options& options);

} // namespace troupe
