// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/neighbours.hpp>
#include <troupe/comm/letter.hpp>
#include <troupe/comm/parcel.hpp>
#include <troupe/comm/shm/bell_thread.hpp>
#include <troupe/comm/shm/parcel_traffic.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace troupe::comm {

/// The parcels between a process of a group over an engine and the others of
/// its host. They go through shared memory, as in a group whose processes are
/// all on one host. A thread of its own takes them; it sleeps in between.
///
/// Thread rule: any thread.
class nearby_parcels {
public:
  /// All must outlive the object.
  /// @param memory of this process, that the others can read
  /// @param to gets the parcels of the others
  nearby_parcels(neighbours& with, arena& memory, parcel_gate& to);
  nearby_parcels(const nearby_parcels&) = delete;
  nearby_parcels& operator=(const nearby_parcels&) = delete;

  /// True if the rank is in another process of this host.
  bool reaches(std::size_t rank) const noexcept {
    return (reached_ & bit_of(rank)) != 0;
  }
  /// As in `parcel_traffic`; `to` is reached.
  void send(std::size_t from, std::size_t to, parcel p) {
    traffic_.send(from, to, std::move(p));
  }

  ///@{
  /// As in `communicator`.
  bool progress() { return traffic_.has_news() && traffic_.advance(); }
  void begin_looking() noexcept;
  void end_looking();
  ///@}

private:
  shm::process_line& own_line() const noexcept {
    return with_.lines()[with_.self()];
  }

  neighbours& with_;
  rank_mask reached_ = 0; ///< ranks of the others
  shm::parcel_traffic traffic_;
  std::optional<shm::bell_thread> thread_; // uses all members above
};

} // namespace troupe::comm
