// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/parcel.hpp>
#include <troupe/comm/shm/shared_segment.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace troupe::comm::shm {

/// A parcel on its way. Its content lies in the sender's segment.
struct alignas(cache_line) parcel_entry {
  parcel_label label;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint32_t from; ///< the rank that sends it
};
static_assert(sizeof(parcel_entry) == cache_line);

/// The parcels of one process to another. One thread at a time writes, one at a
/// time reads.
///
/// Memory order. The sender writes the content and the entry, then `written`
/// with release; the reader loads it with acquire. The reader has copied the
/// content before it stores `read` with release; the sender loads that with
/// acquire before it uses entry and memory again. `wants_room` is seq_cst on
/// both sides, with the load of `read` after the sender's store and the load of
/// the flag after the reader's store: either the sender sees the room, or the
/// reader sees the flag and wakes the sender.
struct parcel_ring {
  static constexpr std::size_t capacity = 16;

  alignas(cache_line) std::atomic<std::uint64_t> written{0};
  std::atomic<bool> wants_room{false};
  alignas(cache_line) std::atomic<std::uint64_t> read{0};
  std::array<parcel_entry, capacity> entries;

  parcel_entry& entry(std::uint64_t number) noexcept {
    return entries[number % capacity];
  }
};

///@{
/// The rings of all pairs of processes, in common memory. They lie behind what
/// else is there, which `Before` is.
inline std::size_t bytes_of_rings(std::size_t processes) noexcept {
  return processes * processes * sizeof(parcel_ring);
}
inline void make_rings(std::byte* at, std::size_t processes) noexcept {
  for (std::size_t i = 0; i < processes * processes; ++i)
    new (at + i * sizeof(parcel_ring)) parcel_ring;
}
template <class Before>
parcel_ring* rings_behind(const shared_segment& common) noexcept {
  static_assert(sizeof(Before) % alignof(parcel_ring) == 0);
  return std::launder(
    reinterpret_cast<parcel_ring*>(common.data() + sizeof(Before)));
}
///@}

} // namespace troupe::comm::shm
