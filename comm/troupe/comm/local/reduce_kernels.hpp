// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::comm::local {

/// Where results go.
struct destination {
  std::byte* data = nullptr;
  /// Use non-temporal stores. Suitable for memory that is not a source and is
  /// not read again before it would be evicted from the cache.
  bool stream = false;
};

/// True for float32, float16, bfloat16 and int32.
bool can_add(dtype type) noexcept;

/// For each i in [first, first + count), adds element i of all `sources` (at
/// least one) and writes the sum to element i of `to`. Each source is read
/// once, and elements are added in the order of `sources`. Floating-point
/// elements are added in float32, integers in int64; the sum is rounded (int32:
/// wrapped) once. A NaN in any source gives NaN. `type` is one that `can_add`
/// accepts.
///
/// The destination may be a source. Any other overlap gives unspecified
/// elements. Thread rule: any thread; disjoint ranges concurrently.
void add(dtype type, std::span<const std::byte* const> sources,
         const destination& to, std::size_t first, std::size_t count) noexcept;

/// The same for one source of any dtype, byte by byte: [first, first + count)
/// are bytes. Bit patterns are kept.
void copy(const std::byte* source, const destination& to, std::size_t first,
          std::size_t count) noexcept;

/// Size in bytes of this machine's last-level cache; 32 MiB if unknown.
std::size_t last_level_cache_bytes() noexcept;

} // namespace troupe::comm::local
