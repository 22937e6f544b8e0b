// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::cpu {

/// Holds oneDNN and OpenBLAS to the calling thread: Debian's oneDNN would grow
/// an OpenMP team under each worker. Call it before every library call; costs
/// a thread-local test after the first time on a thread.
void ensure_single_threaded() noexcept;

} // namespace troupe::cpu
