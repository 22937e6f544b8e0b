// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/parcel.hpp>
#include <troupe/comm/shm/meeting.hpp>
#include <troupe/comm/shm/parcel_ring.hpp>
#include <troupe/comm/shm/process_line.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace troupe::comm::shm {

/// The parcels that a process sends to the others of its host, and gets from
/// them. An entry of 64 bytes goes through a ring. The content stays where the
/// sender wrote it, in its segment, until the receiver has read it. A bell
/// wakes the receiver, which then calls `advance`.
///
/// Thread rule: any thread.
class parcel_traffic {
public:
  /// All must outlive the object.
  /// @param lines the bells, by member; in memory that all members map
  /// @param rings those of all pairs (`bytes_of_rings`), in such memory too
  /// @param self which of the members is this process
  /// @param memory in this process's segment
  /// @param to gets the parcels of the others
  parcel_traffic(std::span<process_line> lines, parcel_ring* rings,
                 const std::vector<member>& members, std::size_t self,
                 arena& memory, parcel_gate& to);
  /// Waits half a second for room for parcels that have none. Memory that
  /// another process may still read is not used again.
  ~parcel_traffic();
  parcel_traffic(const parcel_traffic&) = delete;
  parcel_traffic& operator=(const parcel_traffic&) = delete;

  /// Sends a parcel of a rank of this process to the process of rank `to`.
  /// Never waits: parcels for which the ring has no room follow later. Copies
  /// the content if it is not in this process's segment. Throws
  /// error(out_of_memory); then nothing was sent.
  void send(std::size_t from, std::size_t to, parcel p);

  /// Passes on what has come, and sends what had no room. True if there was
  /// anything.
  bool advance();
  /// True if `advance` may have something to do. Cheap.
  bool has_news() const noexcept;

private:
  /// The way to another process.
  struct way_out {
    std::mutex mutex; // guards what follows
    parcel_ring* ring = nullptr;
    std::uint64_t written = 0;  // entries, as the ring says it
    std::deque<buffer> in_ring; // contents of what was not read yet
    std::uint64_t first = 0;    // the number of the first of them
    std::deque<std::pair<std::uint32_t, parcel>> waiting; // with their ranks
    bool is_counted = false;                              // in `full_ways_`
  };

  parcel_ring& ring(std::size_t from, std::size_t to) noexcept;
  std::size_t process_of(std::size_t rank) const noexcept;
  static std::uint64_t entries_read(const way_out& way,
                                    std::memory_order order) noexcept;
  bool fill(way_out& way);
  bool take_all(std::size_t from);
  void deliver(std::size_t from, const parcel_entry& entry);
  void refuse(std::size_t from);
  bool send_waiting();

  std::span<process_line> lines_;
  parcel_ring* rings_;
  const std::vector<member>& members_;
  std::size_t self_;
  arena& memory_;
  parcel_gate& gate_;
  std::deque<way_out> ways_; // by process
  /// Ways with parcels that wait for room. Relaxed: a hint for threads that
  /// look, which look again.
  std::atomic<std::uint32_t> full_ways_{0};
  /// Requests to work since nobody does, as in `shm_group`: the thread that
  /// counts from 0 to 1 works until no request is new.
  std::atomic<std::uint32_t> requests_{0};
};

} // namespace troupe::comm::shm
