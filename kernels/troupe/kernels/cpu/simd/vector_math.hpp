// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <bit>
#include <cmath>
#include <cstdint>

namespace troupe::cpu {

/// e^x within 2 units in the last place; 0 below -104, infinity above 88.8; NaN
/// stays NaN. Branch-free, so that loops over it vectorise.
/// Source: Cephes expf (Moshier), with the scale split in two for denormals.
TROUPE_INLINE float fast_exp(float x) noexcept {
  constexpr float log2e = 1.44269504088896341f;
  constexpr float ln2_high = 0.693359375f;
  constexpr float ln2_low = -2.12194440e-4f;
  constexpr float round_to_int = 12582912.0f; // 1.5 * 2^23
  const float clamped = x < -105.0f ? -105.0f : (x > 89.0f ? 89.0f : x);
  const float shifted = clamped * log2e + round_to_int;
  const float n = shifted - round_to_int;
  const float r = clamped - n * ln2_high - n * ln2_low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::int32_t exponent =
    std::bit_cast<std::int32_t>(shifted) - 0x4b400000;
  const std::int32_t half = exponent >> 1;
  const float scale_a = std::bit_cast<float>((half + 127) << 23);
  const float scale_b = std::bit_cast<float>((exponent - half + 127) << 23);
  const float result = p * scale_a * scale_b;
  return x != x ? x : result;
}

TROUPE_INLINE float fast_sigmoid(float x) noexcept {
  return 1.0f / (1.0f + fast_exp(-x));
}

/// tanh within four units in the last place. Source: Eigen's rational
/// approximation (ptanh).
TROUPE_INLINE float fast_tanh(float value) noexcept {
  const float x =
    value < -7.90531110763549805f
      ? -7.90531110763549805f
      : (value > 7.90531110763549805f ? 7.90531110763549805f : value);
  const float x2 = x * x;
  float p = -2.76076847742355e-16f;
  p = p * x2 + 2.00018790482477e-13f;
  p = p * x2 + -8.60467152213735e-11f;
  p = p * x2 + 5.12229709037114e-08f;
  p = p * x2 + 1.48572235717979e-05f;
  p = p * x2 + 6.37261928875436e-04f;
  p = p * x2 + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * x2 + 1.18534705686654e-04f;
  q = q * x2 + 2.26843463243900e-03f;
  q = q * x2 + 4.89352518554385e-03f;
  return x * p / q;
}

/// The error function, with an absolute error below 5e-7. Source: Eigen's
/// rational approximation (perf).
TROUPE_INLINE float fast_erf(float value) noexcept {
  const float x = value < -4.0f ? -4.0f : (value > 4.0f ? 4.0f : value);
  const float x2 = x * x;
  float p = -2.72614225801306e-10f;
  p = p * x2 + 2.77068142495902e-08f;
  p = p * x2 + -2.10102402082508e-06f;
  p = p * x2 + -5.69250639462346e-05f;
  p = p * x2 + -7.34990630326855e-04f;
  p = p * x2 + -2.95459980854025e-03f;
  p = p * x2 + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * x2 + -2.13374055278905e-04f;
  q = q * x2 + -1.68282697438203e-03f;
  q = q * x2 + -7.37332916720468e-03f;
  q = q * x2 + -1.42647390514189e-02f;
  return x * p / q;
}

/// log(x) within 2 units in the last place; -infinity at 0, NaN for negative x.
/// Branch-free. Source: Cephes logf (Moshier).
TROUPE_INLINE float fast_log(float x) noexcept {
  constexpr float ln2_high = 0.693359375f;
  constexpr float ln2_low = -2.12194440e-4f;
  constexpr float smallest_normal = 1.17549435e-38f;
  const bool denormal = x < smallest_normal;
  const std::int32_t bits =
    std::bit_cast<std::int32_t>(denormal ? x * 8388608.0f : x);
  const float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);
  const bool low = m < 0.707106781186547524f;
  const float e = static_cast<float>((bits >> 23) - 126)
                  - (denormal ? 23.0f : 0.0f) - (low ? 1.0f : 0.0f);
  const float r = (low ? m + m : m) - 1.0f;
  const float z = r * r;
  float p = 7.0376836292e-2f;
  p = p * r + -1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r + -1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r + -1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r + -2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  const float y = p * r * z + ln2_low * e - 0.5f * z;
  const float result = r + y + ln2_high * e;
  const float at_zero = x == 0.0f ? -HUGE_VALF : result;
  return x > 3.4028234e38f ? x : (x >= 0.0f ? at_zero : std::nanf(""));
}

// The same functions for templates over T = float or double.

TROUPE_INLINE float exp_of(float x) noexcept {
  return fast_exp(x);
}
TROUPE_INLINE double exp_of(double x) noexcept {
  return std::exp(x);
}
TROUPE_INLINE float log_of(float x) noexcept {
  return fast_log(x);
}
TROUPE_INLINE double log_of(double x) noexcept {
  return std::log(x);
}
TROUPE_INLINE float tanh_of(float x) noexcept {
  return fast_tanh(x);
}
TROUPE_INLINE double tanh_of(double x) noexcept {
  return std::tanh(x);
}
TROUPE_INLINE float erf_of(float x) noexcept {
  return fast_erf(x);
}
TROUPE_INLINE double erf_of(double x) noexcept {
  return std::erf(x);
}
template <class T>
TROUPE_INLINE T sigmoid_of(T x) noexcept {
  return T(1) / (T(1) + exp_of(-x));
}
/// log(1 + e^x) without overflow.
template <class T>
TROUPE_INLINE T softplus_of(T x) noexcept {
  const T distance = x < T(0) ? x : -x;
  return (x < T(0) ? T(0) : x) + log_of(T(1) + exp_of(distance));
}

} // namespace troupe::cpu
