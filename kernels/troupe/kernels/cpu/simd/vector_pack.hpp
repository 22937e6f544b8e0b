// SPDX-License-Identifier: Apache-2.0
#pragma once

// This header is compiled once per instruction set. Each file that includes it
// must have its own copy: hence the unnamed namespace in a header, and no
// standard library.

namespace troupe::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif

typedef float float_vector __attribute__((vector_size(lanes * 4)));
typedef float loose_vector
  __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
typedef int mask_vector __attribute__((vector_size(lanes * 4)));
typedef unsigned bits_vector __attribute__((vector_size(lanes * 4)));
typedef unsigned short half_vector __attribute__((vector_size(lanes * 2)));
typedef unsigned short loose_half_vector
  __attribute__((vector_size(lanes * 2), aligned(2), may_alias));

/// A float that is stored rounded to bfloat16.
struct stored_bfloat16 {
  unsigned short bits;
};

/// `Size` floats in vector registers.
template <int Size>
struct pack {
  static_assert(Size % lanes == 0);
  static constexpr int count = Size / lanes;
  float_vector part[count];

  static pack load(const float* from) {
    pack p;
    for (int i = 0; i < count; ++i)
      p.part[i] = *reinterpret_cast<const loose_vector*>(from + i * lanes);
    return p;
  }
  static pack load(const stored_bfloat16* from) {
    pack p;
    for (int i = 0; i < count; ++i) {
      const half_vector bits =
        *reinterpret_cast<const loose_half_vector*>(from + i * lanes);
      p.part[i] = reinterpret_cast<float_vector>(
        __builtin_convertvector(bits, bits_vector) << 16);
    }
    return p;
  }
  static pack all(float value) {
    pack p;
    for (int i = 0; i < count; ++i)
      p.part[i] = float_vector{} + value;
    return p;
  }
  void store(float* to) const {
    for (int i = 0; i < count; ++i)
      *reinterpret_cast<loose_vector*>(to + i * lanes) = part[i];
  }

  /// Rounds to nearest, ties to even; NaN stays NaN.
  void store(stored_bfloat16* to) const {
    for (int i = 0; i < count; ++i) {
      const auto bits = reinterpret_cast<bits_vector>(part[i]);
      const bits_vector near = bits + 0x7fff + ((bits >> 16) & 1);
      const bits_vector kept = part[i] == part[i] ? near : bits | 0x400000;
      *reinterpret_cast<loose_half_vector*>(to + i * lanes) =
        __builtin_convertvector(kept >> 16, half_vector);
    }
  }

  pack& operator+=(const pack& other) {
    for (int i = 0; i < count; ++i)
      part[i] += other.part[i];
    return *this;
  }
  pack& operator-=(const pack& other) {
    for (int i = 0; i < count; ++i)
      part[i] -= other.part[i];
    return *this;
  }
  pack& operator*=(const pack& other) {
    for (int i = 0; i < count; ++i)
      part[i] *= other.part[i];
    return *this;
  }
  pack& operator/=(float divisor) {
    for (int i = 0; i < count; ++i)
      part[i] /= divisor;
    return *this;
  }
  friend pack operator+(pack a, const pack& b) { return a += b; }
  friend pack operator-(pack a, const pack& b) { return a -= b; }
  friend pack operator*(pack a, const pack& b) { return a *= b; }
};

} // namespace
} // namespace troupe::cpu
