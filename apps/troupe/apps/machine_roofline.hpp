// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program_cost.hpp>

namespace troupe::apps {

/// Measures what `threads` threads of this machine reach together: the product
/// of matrices 1024 x 1024, float32, one per thread, by the kernels' own
/// `gemm`; and a = b + c * s over arrays of 64 MiB each, which no cache holds,
/// counted as two reads and a write (McCalpin's STREAM, 1995). The best of
/// several rounds, some 0.5 s in all; takes 12 MiB per thread and 192 MiB.
/// Throws error(invalid_argument) if `threads` is below 1.
graph::roofline measure_roofline(int threads);

} // namespace troupe::apps
