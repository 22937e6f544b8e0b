// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/dtype.hpp>

#include <bit>

namespace troupe {

namespace {

constexpr std::uint32_t float_infinity = 0x7f80'0000;

// Below the smallest normal half, adding 0.5 makes the FPU round: the last bit
// of the sum is 2^-24, which is the last bit of a subnormal half.
std::uint32_t subnormal_half(std::uint32_t magnitude) noexcept {
  auto sum = std::bit_cast<float>(magnitude) + 0.5f;
  return std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5f);
}

// Changes the exponent's bias from 127 to 15 and rounds off 13 bits. A carry
// out of the significand raises the exponent, up to infinity, as it must.
std::uint32_t normal_half(std::uint32_t magnitude) noexcept {
  auto odd = (magnitude >> 13) & 1;
  return (magnitude - (112u << 23) + 0xfff + odd) >> 13;
}

std::uint32_t half_magnitude(std::uint32_t magnitude) noexcept {
  if (magnitude > float_infinity) // NaN: quiet, payload kept
    return 0x7e00 | ((magnitude >> 13) & 0x3ff);
  if (magnitude >= 0x4780'0000) // 65536 and above
    return 0x7c00;
  if (magnitude < 0x3880'0000) // below 2^-14
    return subnormal_half(magnitude);
  return normal_half(magnitude);
}

float half_to_float_magnitude(std::uint32_t half) noexcept {
  if (half > 0x7c00)
    return std::bit_cast<float>((half << 13) | 0x7fc0'0000);
  if (half == 0x7c00)
    return std::bit_cast<float>(float_infinity);
  if (half < 0x400)
    return static_cast<float>(half) * 0x1p-24f;
  return std::bit_cast<float>((half << 13) + (112u << 23));
}

} // namespace

std::size_t size_of(dtype type) noexcept {
  switch (type) {
  case dtype::float64:
  case dtype::int64: return 8;
  case dtype::float32:
  case dtype::int32: return 4;
  case dtype::float16:
  case dtype::bfloat16:
  case dtype::int16: return 2;
  case dtype::int8:
  case dtype::uint8:
  case dtype::boolean: return 1;
  }
  return 0;
}

std::string_view to_string(dtype type) noexcept {
  switch (type) {
  case dtype::float32: return "float32";
  case dtype::float64: return "float64";
  case dtype::float16: return "float16";
  case dtype::bfloat16: return "bfloat16";
  case dtype::int8: return "int8";
  case dtype::uint8: return "uint8";
  case dtype::int16: return "int16";
  case dtype::int32: return "int32";
  case dtype::int64: return "int64";
  case dtype::boolean: return "bool";
  }
  return "unknown";
}

bool is_floating(dtype type) noexcept {
  return type == dtype::float32 || type == dtype::float64
         || type == dtype::float16 || type == dtype::bfloat16;
}

float16::float16(float value) noexcept {
  auto word = std::bit_cast<std::uint32_t>(value);
  auto sign = (word >> 16) & 0x8000;
  bits = static_cast<std::uint16_t>(sign | half_magnitude(word & 0x7fff'ffff));
}

float16::operator float() const noexcept {
  auto magnitude = half_to_float_magnitude(bits & 0x7fffu);
  auto sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

bfloat16::bfloat16(float value) noexcept {
  auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fff'ffff) > float_infinity)
    word |= 0x0040'0000; // a NaN must stay NaN when its payload is cut off
  else
    word += 0x7fff + ((word >> 16) & 1);
  bits = static_cast<std::uint16_t>(word >> 16);
}

bfloat16::operator float() const noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

} // namespace troupe
