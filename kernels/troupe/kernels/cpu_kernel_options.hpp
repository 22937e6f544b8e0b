// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

namespace troupe {

/// Speed options of the CPU kernels.
struct cpu_kernel_options {
  /// Allows Winograd's method for 3x3 convolutions. It is two to three times as
  /// fast with AVX2 or AVX-512, but rounding errors are about ten times as
  /// large.
  bool winograd = true;
  precision factors = precision::float32;
};

/// `cpu_kernels()` with options. Throws error(unsupported_op) if this processor
/// does not support the precision.
kernel_table cpu_kernels(const cpu_kernel_options& options);

} // namespace troupe
