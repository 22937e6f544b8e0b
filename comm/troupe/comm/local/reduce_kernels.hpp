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
  /// Store past the caches: right for memory that is not read again before it
  /// would be evicted, and that is not itself a source.
  bool stream = false;
};

/// What is done with the elements of several sources.
struct merge_rule {
  dtype type = dtype::float32; ///< one that `can_merge` accepts
  bool max = false;            ///< the greatest element, else the sum
  std::int32_t divisor = 1;    ///< of the sum; results round towards zero
};

/// float32, float16, bfloat16, int32.
bool can_merge(dtype type) noexcept;

/// Writes, for each i in [first, first + count), the merger of element i of all
/// `sources` to element i of all `destinations`. Each source is read once and
/// elements are taken in the order of `sources`. Floating elements are added in
/// float32, integers in int64, and rounded (int32: wrapped) once. A NaN in any
/// source gives NaN, for sum and max. No source gives zeros.
///
/// A destination may be a source, or may be given twice; any other overlap
/// gives unspecified elements. Thread rule: any thread; ranges that do not
/// overlap at the same time.
void merge(const merge_rule& rule, std::span<const std::byte* const> sources,
           std::span<const destination> destinations, std::size_t first,
           std::size_t count) noexcept;

/// The same for one source of any dtype, byte by byte: [first, first + count)
/// are bytes. Bit patterns are kept.
void copy(const std::byte* source, std::span<const destination> destinations,
          std::size_t first, std::size_t count) noexcept;

/// Bytes of this machine's last-level cache (32 MiB if it does not say).
std::size_t last_level_cache_bytes() noexcept;

} // namespace troupe::comm::local
