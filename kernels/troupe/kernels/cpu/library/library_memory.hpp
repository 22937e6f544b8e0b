// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

/// Takes the memory that OpenBLAS and oneDNN need for calls on `threads`
/// threads at once, before tensors can take it: if addresses run out, OpenBLAS
/// waits for ever and oneDNN crashes. Does nothing if the process has no limit
/// of addresses (`ulimit -v`) or data (`ulimit -d`), or has already taken
/// enough. Executors call it; call it earlier to fail earlier. Thread rule: any
/// thread.
///
/// Throws error(out_of_memory) if too few addresses are left.
void take_library_memory(std::size_t threads);

} // namespace troupe
