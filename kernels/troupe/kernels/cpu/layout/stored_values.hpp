// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/simd/bfloat16_bits.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/tensor.hpp>

#include <troupe/base/assert.hpp>

#include <bit>
#include <cstdint>

namespace troupe::cpu {

// With bfloat16 factors (`--precision bf16`), images that convolutions write
// are rounded to bfloat16 in memory (channel_blocks.hpp). That halves the
// traffic, and the next convolution would round them anyway. Loops still
// compute in float32.

/// float32 values that kernels read, stored as float32 or rounded to bfloat16.
/// As cheap to copy as a pointer.
class stored_values {
public:
  stored_values(const float* at) noexcept : at_(at) {}
  stored_values(const bfloat16* at) noexcept : at_(at), rounded_(true) {}

  /// Calls `use` with a pointer to float or bfloat16.
  template <class Use>
  decltype(auto) visit(Use use) const {
    return rounded_ ? use(static_cast<const bfloat16*>(at_))
                    : use(static_cast<const float*>(at_));
  }

  stored_values operator+(std::int64_t values) const noexcept {
    return visit([values](auto* at) { return stored_values(at + values); });
  }

  bool rounded() const noexcept { return rounded_; }
  const void* data() const noexcept { return at_; }
  /// The values must not be rounded; asserted.
  const float* floats() const noexcept {
    TROUPE_ASSERT(!rounded_);
    return static_cast<const float*>(at_);
  }

private:
  const void* at_;
  bool rounded_ = false;
};

/// The same for values that kernels write.
class stored_results {
public:
  stored_results(float* at) noexcept : at_(at) {}
  stored_results(bfloat16* at) noexcept : at_(at), rounded_(true) {}

  template <class Use>
  decltype(auto) visit(Use use) const {
    return rounded_ ? use(static_cast<bfloat16*>(at_))
                    : use(static_cast<float*>(at_));
  }

  operator stored_values() const noexcept {
    return visit([](const auto* at) { return stored_values(at); });
  }
  stored_results operator+(std::int64_t values) const noexcept {
    return visit([values](auto* at) { return stored_results(at + values); });
  }

  bool rounded() const noexcept { return rounded_; }
  void* data() const noexcept { return at_; }
  /// The values must not be rounded; asserted.
  float* floats() const noexcept {
    TROUPE_ASSERT(!rounded_);
    return static_cast<float*>(at_);
  }

private:
  void* at_;
  bool rounded_ = false;
};

/// Calls `use(to, from)` with two pointers to float or two to bfloat16. Asserts
/// that both are stored alike.
template <class Use>
void visit_alike(const stored_results& to, const stored_values& from, Use use) {
  TROUPE_ASSERT(to.rounded() == from.rounded());
  from.visit(
    [&]<class T>(const T* values) { use(static_cast<T*>(to.data()), values); });
}

// For loops over both kinds of element:

TROUPE_INLINE float value_of(float stored) {
  return stored;
}
TROUPE_INLINE float value_of(bfloat16 stored) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(stored.bits) << 16);
}

TROUPE_INLINE void store(float& to, float value) {
  to = value;
}
/// Rounds to nearest, ties to even.
TROUPE_INLINE void store(bfloat16& to, float value) {
  to.bits = static_cast<std::uint16_t>(
    rounded_half(std::bit_cast<std::uint32_t>(value)));
}

/// Copies `n` values.
void copy_stored(stored_results to, stored_values from, std::int64_t n);

} // namespace troupe::cpu
