// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
/// - OPENBLAS_CORETYPE is set, and Troupe does not know that the processor has
///   the instructions of the code that it selects.
std::string_view reason_against_blas() noexcept;

/// Sets of instructions, each with those before it.
enum class instructions : std::uint8_t { sse4_2, avx, avx2, avx512 };
/// True if a processor with `available` is known to run OpenBLAS's code for
/// `core`.
bool runs_blas_code(std::string_view core, instructions available) noexcept;

} // namespace troupe
