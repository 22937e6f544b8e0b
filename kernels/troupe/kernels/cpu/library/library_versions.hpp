// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// The libraries that CPU kernels call, with the versions that were found at
/// run time: {"oneDNN", "2.6.3"}.
std::vector<std::pair<std::string, std::string>> cpu_library_versions();

/// Why kernels do without the loaded OpenBLAS; empty if they use it:
/// - Its serial build (0.3.21) does not allow calls by several threads at once.
/// - OPENBLAS_CORETYPE selects code with instructions that the processor lacks.
std::string_view reason_against_blas() noexcept;

/// The same for a build of OpenBLAS that is `parallel` or not and that has
/// selected the code for `core`, on a processor with or without AVX-512 and
/// AVX2.
std::string_view reason_against_blas(bool parallel, std::string_view core,
                                     bool has_avx512, bool has_avx2) noexcept;

} // namespace troupe
