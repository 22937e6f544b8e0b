// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/dtype.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

namespace troupe {

TEST_SUITE("kernels.dtype") {

namespace {

constexpr int dtype_count = 10;

std::uint16_t half(float value) {
  return float16{value}.bits;
}
std::uint16_t brain(float value) {
  return bfloat16{value}.bits;
}

float from_half(std::uint16_t bits) {
  float16 value;
  value.bits = bits;
  return static_cast<float>(value);
}

float from_brain(std::uint16_t bits) {
  bfloat16 value;
  value.bits = bits;
  return static_cast<float>(value);
}

// What IEEE 754 says the bits mean, by way of ldexp.
double meaning_of_half(unsigned bits) {
  auto exponent = static_cast<int>((bits >> 10) & 0x1f);
  auto fraction = static_cast<double>(bits & 0x3ff);
  auto magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

constexpr float infinity = std::numeric_limits<float>::infinity();

} // namespace

TEST_CASE("sizes are those of the C++ types") {
  CHECK(size_of(dtype_of<float>) == sizeof(float));
  CHECK(size_of(dtype_of<double>) == sizeof(double));
  CHECK(size_of(dtype_of<float16>) == sizeof(float16));
  CHECK(size_of(dtype_of<bfloat16>) == sizeof(bfloat16));
  CHECK(size_of(dtype_of<std::int8_t>) == 1);
  CHECK(size_of(dtype_of<std::uint8_t>) == 1);
  CHECK(size_of(dtype_of<std::int16_t>) == 2);
  CHECK(size_of(dtype_of<std::int32_t>) == 4);
  CHECK(size_of(dtype_of<std::int64_t>) == 8);
  CHECK(size_of(dtype_of<bool>) == sizeof(bool));
}

TEST_CASE("every dtype has a name of its own") {
  std::set<std::string_view> names;
  for (int type = 0; type < dtype_count; ++type)
    names.insert(to_string(static_cast<dtype>(type)));
  CHECK(names.size() == dtype_count);
  CHECK_FALSE(names.contains("unknown"));
  CHECK(to_string(dtype::boolean) == "bool");
  CHECK(to_string(dtype::bfloat16) == "bfloat16");
}

TEST_CASE("exactly four dtypes are floating") {
  int count = 0;
  for (int type = 0; type < dtype_count; ++type)
    count += is_floating(static_cast<dtype>(type));
  CHECK(count == 4);
  CHECK(is_floating(dtype::float16));
  CHECK_FALSE(is_floating(dtype::int32));
}

TEST_CASE("every finite float16 means what IEEE 754 says") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits)
    if ((bits & 0x7c00) != 0x7c00)
      wrong += static_cast<double>(from_half(static_cast<std::uint16_t>(bits)))
               != meaning_of_half(bits);
  CHECK(wrong == 0);
}

TEST_CASE("every float16 survives the way to float32 and back") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    auto nan = (bits & 0x7fff) > 0x7c00;
    auto expected = nan ? bits | 0x200 : bits; // NaNs become quiet
    wrong += half(from_half(static_cast<std::uint16_t>(bits))) != expected;
  }
  CHECK(wrong == 0);
}

TEST_CASE("float16 rounds between neighbours to the nearer, ties to even") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    auto low = static_cast<std::uint16_t>(bits);
    auto high = static_cast<std::uint16_t>(bits + 1);
    auto middle = (from_half(low) + from_half(high)) / 2; // exact in float32
    wrong += half(middle) != (bits % 2 == 0 ? low : high);
    wrong += half(std::nextafter(middle, 0.f)) != low;
    wrong += half(std::nextafter(middle, infinity)) != high;
    wrong += half(-middle) != ((bits % 2 == 0 ? low : high) | 0x8000);
  }
  CHECK(wrong == 0);
}

TEST_CASE("float16 overflows to infinity from 65520 on") {
  CHECK(half(65504.f) == 0x7bff);
  CHECK(half(std::nextafter(65520.f, 0.f)) == 0x7bff);
  CHECK(half(65520.f) == 0x7c00);
  CHECK(half(1e30f) == 0x7c00);
  CHECK(half(-infinity) == 0xfc00);
  CHECK(from_half(0xfc00) == -infinity);
}

TEST_CASE("float16 underflows to a zero that keeps its sign") {
  CHECK(half(0x1p-24f) == 1);
  CHECK(half(0x1p-25f) == 0);
  CHECK(half(std::nextafter(0x1p-25f, 1.f)) == 1);
  CHECK(half(-1e-30f) == 0x8000);
  CHECK(std::signbit(from_half(0x8000)));
}

TEST_CASE("NaN stays NaN in both 16-bit types") {
  auto nan = std::numeric_limits<float>::quiet_NaN();
  auto low_payload = std::bit_cast<float>(0x7f800001u);
  CHECK(std::isnan(from_half(half(nan))));
  CHECK(std::isnan(from_half(half(low_payload))));
  CHECK(std::bit_cast<std::uint32_t>(from_half(0x7c01)) == 0x7fc02000);
  CHECK(std::isnan(from_brain(brain(nan))));
  CHECK(std::isnan(from_brain(brain(low_payload))));
  CHECK(std::isnan(from_brain(brain(std::bit_cast<float>(0x7fffffffu)))));
}

TEST_CASE("every bfloat16 survives the way to float32 and back") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    auto nan = (bits & 0x7fff) > 0x7f80;
    auto expected = nan ? bits | 0x40 : bits;
    wrong += brain(from_brain(static_cast<std::uint16_t>(bits))) != expected;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16 rounds to nearest, ties to even") {
  CHECK(brain(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
  CHECK(brain(std::bit_cast<float>(0x3f808001u)) == 0x3f81);
  CHECK(brain(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
  CHECK(brain(std::bit_cast<float>(0x3f817fffu)) == 0x3f81);
  CHECK(brain(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(brain(-infinity) == 0xff80);
}

} // TEST_SUITE("kernels.dtype")

} // namespace troupe
