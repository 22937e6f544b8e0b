// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

/// Takes what OpenBLAS and oneDNN need for calls by `threads` threads at once,
/// before tensors can take it: without addresses OpenBLAS waits for ever and
/// oneDNN crashes. Does nothing where the process has no limit of addresses
/// (`ulimit -v`), or has taken as much before. Executors call it; call it
/// earlier to fail earlier. Any thread.
///
/// Throws error(out_of_memory) if too few are left.
void take_library_memory(std::size_t threads);

} // namespace troupe
