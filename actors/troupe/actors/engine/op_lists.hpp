// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actors {

/// What an op does when its task has run: five lists of numbers, stored one
/// after the other behind a head.
///
/// The head is one word with the lists' lengths. Most ops have only the first
/// three lists and few entries: their head is less than `first_other_head`, and
/// a run reads it in a few instructions. If a length does not fit, the word is
/// `lengths_follow`, and five words with the lengths follow it.
struct op_lists {
  using numbers = std::span<const std::uint32_t>;

  numbers own_places;    ///< temporaries that this op alone releases
  numbers shared_places; ///< numbers of shared releases of its step
  numbers told_now;      ///< targets in its step
  /// numbers of shared releases, and distances: pairs
  numbers delayed_places;
  numbers told_later; ///< targets in later steps, and distances: pairs

  /// Appends the lists, with their head, to `all`.
  void append_to(std::vector<std::uint32_t>& all) const;

  /// True if the op whose head is at `head` has only the first three lists and
  /// few entries.
  static bool is_short(const std::uint32_t* head) noexcept {
    return *head < first_other_head;
  }
  /// Reads the lists if `is_short(head)`.
  static op_lists read_short(const std::uint32_t* head) noexcept {
    const auto lengths = *head;
    return split(head + 1,
                 {length(lengths, 0), length(lengths, 1), length(lengths, 2)});
  }
  /// Reads the lists of any op.
  static op_lists read(const std::uint32_t* head) noexcept {
    if (*head == lengths_follow)
      return split(head + 6, {head[1], head[2], head[3], head[4], head[5]});
    const auto lengths = *head;
    return split(head + 1,
                 {length(lengths, 0), length(lengths, 1), length(lengths, 2),
                  length(lengths, 3), length(lengths, 4)});
  }

private:
  struct five_lengths {
    std::uint32_t of[5];
  };
  static constexpr std::uint32_t shifts[] = {0, 6, 12, 20, 26, 32};
  static constexpr std::uint32_t first_other_head = 1u << shifts[3];
  static constexpr std::uint32_t lengths_follow = UINT32_MAX;

  static constexpr std::uint32_t largest(std::uint32_t list) noexcept {
    return (1u << (shifts[list + 1] - shifts[list])) - 1;
  }
  static std::uint32_t length(std::uint32_t lengths,
                              std::uint32_t list) noexcept {
    return lengths >> shifts[list] & largest(list);
  }
  static op_lists split(const std::uint32_t* first,
                        const five_lengths& lengths) noexcept {
    const auto take = [&](std::uint32_t list) {
      const numbers taken{first, lengths.of[list]};
      first += lengths.of[list];
      return taken;
    };
    return {take(0), take(1), take(2), take(3), take(4)};
  }
};

inline void op_lists::append_to(std::vector<std::uint32_t>& all) const {
  const numbers lists[] = {own_places, shared_places, told_now, delayed_places,
                           told_later};
  std::uint32_t head = 0;
  bool fits = true;
  for (std::uint32_t l = 0; l < 5; ++l) {
    fits &= lists[l].size() <= largest(l);
    head |= static_cast<std::uint32_t>(lists[l].size()) << shifts[l];
  }
  fits &= head != lengths_follow;
  all.push_back(fits ? head : lengths_follow);
  if (!fits)
    for (auto& list : lists)
      all.push_back(static_cast<std::uint32_t>(list.size()));
  for (auto& list : lists)
    all.insert(all.end(), list.begin(), list.end());
}

} // namespace troupe::actors
