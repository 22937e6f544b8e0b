// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The libraries that CPU kernels call, with the versions that were found at
/// run time: {"oneDNN", "2.6.3"}.
std::vector<std::pair<std::string, std::string>> cpu_library_versions();

/// True if several threads may call the loaded OpenBLAS at once. Its serial
/// build (0.3.21) does not allow that; kernels then do without it.
bool blas_takes_concurrent_calls() noexcept;

} // namespace troupe
