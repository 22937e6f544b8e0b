// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

namespace troupe {

/// What the CPU kernels may do for speed.
struct cpu_kernel_options {
  /// Convolutions of 3x3 may use Winograd's method: two to three times as fast
  /// with AVX2 or AVX-512, with roundings about ten times as large.
  bool winograd = true;
  precision factors = precision::float32;
};

/// `cpu_kernels()` with other options. Throws error(unsupported_op) if this
/// processor lacks the precision.
kernel_table cpu_kernels(const cpu_kernel_options& options);

} // namespace troupe
