// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// In what numbers kernels multiply the factors of matrix products and
/// convolutions, where that is faster, and in what images lie in memory between
/// convolutions. Sums, all other ops and parameters are float32.
enum class precision : std::uint8_t {
  float32,
  bfloat16, ///< rounded to 8 bits: up to half the time and memory
};

/// "fp32" or "bf16".
std::string_view to_string(precision p) noexcept;

/// True if this processor multiplies in that precision; bfloat16 needs
/// AVX-512 BF16.
bool has_precision(precision p) noexcept;

} // namespace troupe
