// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// Element types. All kernels compute in float32. Mathematical ops also support
/// float64, int32 and int64. The other types are only stored and cast.
enum class dtype : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  uint8,
  int16,
  int32,
  int64,
  boolean,
};

/// Bytes of one element.
std::size_t size_of(dtype type) noexcept;

/// "float32", "bfloat16", "bool", ...
std::string_view to_string(dtype type) noexcept;

/// True of float16, bfloat16, float32 and float64.
bool is_floating(dtype type) noexcept;

/// IEEE 754 binary16, for storage and casts.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) noexcept; ///< rounds to nearest, ties to even
  explicit operator float() const noexcept;
};

/// The upper half of a float32, for storage and casts.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) noexcept; ///< rounds to nearest, ties to even
  explicit operator float() const noexcept;
};

/// The dtype of a C++ element type: `dtype_of<float> == dtype::float32`.
template <class T>
inline constexpr dtype dtype_of = dtype(255);
// A table reads better on one line each.
// clang-format off
template <> inline constexpr dtype dtype_of<float> = dtype::float32;
template <> inline constexpr dtype dtype_of<double> = dtype::float64;
template <> inline constexpr dtype dtype_of<float16> = dtype::float16;
template <> inline constexpr dtype dtype_of<bfloat16> = dtype::bfloat16;
template <> inline constexpr dtype dtype_of<std::int8_t> = dtype::int8;
template <> inline constexpr dtype dtype_of<std::uint8_t> = dtype::uint8;
template <> inline constexpr dtype dtype_of<std::int16_t> = dtype::int16;
template <> inline constexpr dtype dtype_of<std::int32_t> = dtype::int32;
template <> inline constexpr dtype dtype_of<std::int64_t> = dtype::int64;
template <> inline constexpr dtype dtype_of<bool> = dtype::boolean;
// clang-format on

} // namespace troupe
