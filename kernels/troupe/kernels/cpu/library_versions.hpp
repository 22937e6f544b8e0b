// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The libraries that CPU kernels call and their versions, as found at run
/// time: {"oneDNN", "2.6.3"}.
std::vector<std::pair<std::string, std::string>> cpu_library_versions();

/// True if OpenBLAS was built to start threads of its own, which compete with
/// Troupe's workers for the cores.
bool blas_has_threads() noexcept;

} // namespace troupe
