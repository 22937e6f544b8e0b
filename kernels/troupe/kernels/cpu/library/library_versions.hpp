// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The libraries that CPU kernels call and their versions, as found at run
/// time: {"oneDNN", "2.6.3"}.
std::vector<std::pair<std::string, std::string>> cpu_library_versions();

/// True if the OpenBLAS that the system loads may be called by several threads
/// at once. Its serial build may not (0.3.21); kernels then do without it.
bool blas_takes_concurrent_calls() noexcept;

} // namespace troupe
