// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::cpu {

/// Keeps oneDNN and OpenBLAS on the calling thread: Debian's oneDNN would
/// otherwise start an OpenMP team under each worker. Call it before every
/// library call; after the first call on a thread it costs one test of a
/// thread-local.
void ensure_single_threaded() noexcept;

} // namespace troupe::cpu
