// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/letter.hpp>
#include <troupe/comm/letters_plan.hpp>
#include <troupe/comm/shm/board.hpp>
#include <troupe/comm/shm/shared_segment.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::comm::shm {

/// What has to be done in a call that all ranks have made: made from their
/// letters, the same in all processes.
///
/// Dense values are added where they lie. The sum of a part is written to the
/// memory of all ranks that want it and gave a value. Others that want a result
/// copy it themselves, and so do all that get rows (they are readers).
///
/// Reads letters of one call after the other and then allocates nothing. Thread
/// rule: one thread at a time.
class call_plan : private letters_plan {
public:
  /// @param segments by rank; they must outlive the plan
  explicit call_plan(std::vector<const shared_segment*> segments);

  /// Takes a call whose letters are all there and have the same hash. Throws
  /// error(peer_failure) if one is malformed.
  void read(const call_slot& call);
  /// Throws what `communicator` lists for values that do not fit together, with
  /// the variable's name.
  void check();

  using letters_plan::needs_plain;
  using letters_plan::ranks_to_convert;

  /// Number of parts of the sums. They can be added in any order by any thread
  /// of any process, each once.
  std::size_t parts() const noexcept;
  void add_part(std::size_t part) const noexcept;

  /// Ranks that copy results.
  rank_mask readers() const noexcept;
  /// Copies the results that a rank does not have yet to its variables. Throws
  /// error(out_of_memory).
  void copy_results(std::size_t rank, std::span<const rank_value> to,
                    arena& memory) const;

private:
  void add_range(std::size_t i, std::size_t first,
                 std::size_t bytes) const noexcept;
  tensor copy_of(std::size_t i, arena& memory) const;

  std::vector<const shared_segment*> segments_; // by rank
};

} // namespace troupe::comm::shm
