// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/letter.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/comm/shm/meeting.hpp>
#include <troupe/comm/shm/parcel_ring.hpp>
#include <troupe/comm/shm/process_line.hpp>
#include <troupe/comm/shm/process_memory.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::comm {

/// The processes of this host in a group over several hosts, this one among
/// them. Each can read the memory of all others, and writes only its own. They
/// are numbered from 0 on this host.
///
/// **Broken off.** A process that can no longer take part may use its memory
/// for something else. It says so first. Whoever has read memory of others asks
/// afterwards whether they have: then what it has read may be wrong.
///
/// Thread rule: any thread.
class neighbours {
public:
  /// Meets the other processes. Throws what `join_shm_group` throws.
  neighbours(const shm_group_options& at, std::shared_ptr<process_memory> own);

  std::size_t count() const noexcept { return met_.members.size(); }
  std::size_t self() const noexcept { return self_; }
  /// True if others can read these bytes of this process.
  bool is_shared(const std::byte* first, std::size_t bytes) const noexcept;
  /// The place of a byte of this process that `is_shared`, for `at`.
  std::uint64_t place_of(const std::byte* first) const noexcept;
  /// The bytes at a place that neighbour `of` has named. Throws
  /// error(peer_failure) if it has no such memory.
  const std::byte* at(std::size_t of, std::uint64_t place,
                      std::size_t bytes) const;

  ///@{
  /// For parcels between them: all processes, by number, the bells that wake
  /// them, and the rings.
  const std::vector<shm::member>& members() const noexcept {
    return met_.members;
  }
  std::span<shm::process_line> lines() const noexcept { return common().lines; }
  shm::parcel_ring* rings() const noexcept {
    return shm::rings_behind<common_part>(met_.common);
  }
  ///@}
  ///@{
  /// For signals between them (`nearby_signals`): what each has told, and the
  /// bells of the threads that wait for it.
  struct alignas(cache_line) told_line {
    /// By `nearby_signals::kind`: how often. Release and acquire: who sees a
    /// count sees what its process had written before.
    std::array<std::atomic<std::uint64_t>, 4> counts{};
    /// The place of the places that it tells. Relaxed: a count publishes it.
    std::atomic<std::uint64_t> places{0};
  };
  std::span<told_line> told() const noexcept { return common().told; }
  std::span<shm::process_line> waiting() const noexcept {
    return common().waiting;
  }
  ///@}

  void break_off() noexcept;
  /// Throws error(peer_failure) if another process has broken off.
  void require_intact() const;

private:
  /// The beginning of the common memory; the rings of parcels lie behind it.
  struct common_part {
    /// By neighbour: 1 once it has broken off. Stored before the process uses
    /// its memory again, loaded after another has read it; with fences, because
    /// the bytes in between are plain.
    std::array<std::atomic<std::uint32_t>, max_ranks> has_broken_off{};
    std::array<shm::process_line, max_ranks> lines;
    std::array<told_line, max_ranks> told;
    std::array<shm::process_line, max_ranks> waiting;
  };
  common_part& common() const noexcept;

  shm::meeting met_;
  std::size_t self_;
};

} // namespace troupe::comm
