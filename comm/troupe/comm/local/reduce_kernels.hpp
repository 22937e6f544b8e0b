// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/collective.hpp>
#include <troupe/kernels/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::comm::local {

/// Where merged elements go.
struct destination {
  std::byte* data = nullptr;
  /// Use non-temporal stores. Suitable for memory that is not a source and is
  /// not read again before it would be evicted from the cache.
  bool stream = false;
};

/// How elements of several sources are merged.
struct merge_rule {
  dtype type = dtype::float32; ///< one that `can_merge` accepts
  bool max = false;            ///< true: maximum; false: sum
  std::int32_t divisor = 1; ///< divisor of the sum; results round towards zero
};

/// True for float32, float16, bfloat16 and int32.
bool can_merge(dtype type) noexcept;

/// For each i in [first, first + count), merges element i of all `sources` and
/// writes the result to element i of all `destinations`. Each source is read
/// once, and elements are merged in the order of `sources`. Floating-point
/// elements are added in float32, integers in int64; the result is rounded
/// (int32: wrapped) once. A NaN in any source gives NaN, for sum and max.
/// Without sources the result is zero.
///
/// A destination may be a source, or may be given twice. Any other overlap
/// gives unspecified elements. Thread rule: any thread; disjoint ranges
/// concurrently.
void merge(const merge_rule& rule, std::span<const std::byte* const> sources,
           std::span<const destination> destinations, std::size_t first,
           std::size_t count) noexcept;

/// The same for one source of any dtype, byte by byte: [first, first + count)
/// are bytes. Bit patterns are kept.
void copy(const std::byte* source, std::span<const destination> destinations,
          std::size_t first, std::size_t count) noexcept;

/// Size in bytes of this machine's last-level cache; 32 MiB if unknown.
std::size_t last_level_cache_bytes() noexcept;

} // namespace troupe::comm::local
