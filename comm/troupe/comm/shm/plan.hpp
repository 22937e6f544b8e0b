// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/merge_rows.hpp>
#include <troupe/comm/shm/board.hpp>
#include <troupe/comm/shm/letter.hpp>
#include <troupe/comm/shm/shared_segment.hpp>

#include <cstddef>
#include <optional>
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
class call_plan {
public:
  /// @param segments by rank; they must outlive the plan
  explicit call_plan(std::vector<const shared_segment*> segments);

  /// Takes a call whose letters are all there and have the same hash. Throws
  /// error(peer_failure) if one is malformed.
  void read(const call_slot& call);
  /// Throws what `communicator` lists for values that do not fit together, with
  /// the variable's name.
  void check();

  /// True if values must be plain before they can be merged, because the
  /// layouts of ranks differ.
  bool needs_plain() const noexcept;
  /// Number of ranks that have values in other layouts.
  std::size_t ranks_to_convert() const noexcept;

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
  using content = letter_value::content;

  struct value_plan {
    std::size_t first = 0; ///< byte of the call at which the value begins
    std::size_t bytes = 0; ///< to add; 0: nothing
    rank_mask givers = 0;  ///< ranks that give a value
    rank_mask written = 0; ///< givers that get the sum
    rank_mask readers = 0;
    bool has_rows = false;
  };

  std::size_t size() const noexcept { return segments_.size(); }
  const letter_value& value(std::size_t rank, std::size_t i) const noexcept {
    return letters_[rank].values()[i];
  }
  std::byte* elements(std::size_t rank, std::size_t i) const noexcept {
    return letters_[rank].elements(value(rank, i));
  }
  bool gives(std::size_t rank, std::size_t i) const noexcept;
  bool gets(std::size_t rank, std::size_t i) const noexcept;
  value_plan plan_of(std::size_t i, std::size_t first) const;
  void check_dense(std::size_t i) const;
  void check_sparse(std::size_t i) const;
  void gather_rows(std::size_t i) const;
  void add_range(std::size_t i, std::size_t first,
                 std::size_t bytes) const noexcept;
  tensor copy_of(std::size_t i, arena& memory) const;

  std::vector<const shared_segment*> segments_; // by rank
  std::vector<letter_view> letters_;            // by rank
  collective_kind kind_ = collective_kind::all_reduce;
  std::size_t root_ = 0;
  std::vector<value_plan> values_;
  std::size_t bytes_ = 0;                                     // of all sums
  mutable std::vector<std::optional<local::rows_view>> rows_; // of one value
};

} // namespace troupe::comm::shm
