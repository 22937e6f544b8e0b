// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/letter.hpp>
#include <troupe/comm/local/merge_rows.hpp>

#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace troupe::comm {

/// Number of the first rank in a mask that has one.
inline std::size_t first_of(rank_mask ranks) noexcept {
  return static_cast<std::size_t>(std::countr_zero(ranks));
}

/// Calls `use(rank)` for each rank of the mask, in order.
template <class Use>
void for_each_rank(rank_mask ranks, Use use) {
  for (; ranks != 0; ranks &= ranks - 1)
    use(first_of(ranks));
}

/// What the letters of all ranks of a call add up to, the same in all
/// processes: who gives what, who gets what, and whether it fits together.
///
/// Reads letters of one call after the other and then allocates nothing. Thread
/// rule: one thread at a time.
class letters_plan {
public:
  /// @param ranks number of ranks, at least 1
  explicit letters_plan(std::size_t ranks) : letters_(ranks) {}

  /// Takes the letters of a call, one per rank, which have the same hash. They
  /// must stay in their memory as long as the plan is used. Throws
  /// error(peer_failure) if one is malformed.
  void read(std::span<const letter_view> letters);
  /// Throws what `communicator` lists for values that do not fit together, with
  /// the variable's name.
  /// @param rows_are_here row numbers can be checked
  void check(bool rows_are_here);

  /// True if values must be plain before they can be merged, because the
  /// layouts of ranks differ.
  bool needs_plain() const noexcept;
  /// Number of ranks that have values in other layouts.
  std::size_t ranks_to_convert() const noexcept;

  /// One variable of the call.
  struct value_plan {
    std::size_t first = 0; ///< byte of the call at which the value begins
    std::size_t bytes = 0; ///< to add; 0: nothing
    rank_mask givers = 0;  ///< ranks that give a value
    rank_mask takers = 0;  ///< ranks that want the result
    rank_mask written = 0; ///< givers that get the sum
    rank_mask readers = 0; ///< takers that do not get it by `written`
    bool has_rows = false;
  };

  collective_kind kind() const noexcept { return kind_; }
  /// Number of ranks.
  std::size_t size() const noexcept { return letters_.size(); }
  std::span<const value_plan> values() const noexcept { return values_; }
  const letter_value& value(std::size_t rank, std::size_t i) const noexcept {
    return letters_[rank].values()[i];
  }
  /// Where a value lies, if the letter has it.
  std::byte* elements(std::size_t rank, std::size_t i) const noexcept {
    return letters_[rank].elements(value(rank, i));
  }
  /// The selected rows of all ranks, if the letters have them. They stay valid
  /// until the next call of this function.
  local::rows_of_ranks rows_of(std::size_t i) const;
  /// The name of a variable.
  std::string_view name(std::size_t i) const noexcept {
    return letters_[0].name(i);
  }

private:
  using content = letter_value::content;

  bool gives(std::size_t rank, std::size_t i) const noexcept;
  bool gets(std::size_t rank, std::size_t i) const noexcept;
  value_plan plan_of(std::size_t i, std::size_t first) const;
  void check_dense(std::size_t i) const;
  void check_sparse(std::size_t i) const;

  collective_kind kind_ = collective_kind::all_reduce;
  std::size_t root_ = 0;
  std::vector<value_plan> values_;
  mutable std::vector<std::optional<local::rows_view>> rows_; // of one value

protected:
  /// The same as `read` with what is in `letters_`.
  void read_letters();

  std::vector<letter_view> letters_; ///< by rank
  std::size_t bytes_ = 0;            ///< of all sums
};

/// Throws if the value has other bytes than its shape says: nobody may read or
/// write beyond a value because of a malformed letter.
void require_whole(std::size_t rank, const letter_value& v);

} // namespace troupe::comm
