// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// Number format in which kernels multiply the factors of matrix products and
/// convolutions, where that is faster. Images between convolutions are also
/// stored in it. Sums, all other ops and parameters use float32.
enum class precision : std::uint8_t {
  float32,
  bfloat16, ///< 8 significant bits: up to half the time and memory
};

/// "fp32" or "bf16".
std::string_view to_string(precision p) noexcept;

/// True if this processor can multiply in that precision. bfloat16 needs
/// AVX-512 BF16.
bool has_precision(precision p) noexcept;

} // namespace troupe
