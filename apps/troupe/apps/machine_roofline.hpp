// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program_cost.hpp>

namespace troupe::apps {

/// Measures the attainable speed of `threads` threads of this machine together:
/// - FLOP/s: each thread multiplies float32 matrices of 1024 x 1024 with the
///   kernels' own `gemm`.
/// - Bytes/s: a = b + c * s over arrays of 64 MiB each, too large for the
///   caches, counted as two reads and one write (McCalpin's STREAM, 1995).
/// Takes the best of 16 rounds, about 0.5 s in total. Uses 12 MiB per thread,
/// then 192 MiB. Throws error(invalid_argument) if `threads` is below 1.
graph::roofline measure_roofline(int threads);

} // namespace troupe::apps
