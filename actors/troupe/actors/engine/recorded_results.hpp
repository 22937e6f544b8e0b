// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actors {

/// The temporaries that each op writes or merges, as the recorder tells them.
/// They could be read from the graph, but its handles are large and lie apart:
/// an event would wait for them longer than it takes to write.
///
/// Built once, op by op. Then const functions from any thread.
class recorded_results {
public:
  struct op {
    std::vector<std::uint32_t> allocated; ///< temporaries that are new
    /// Temporaries whose earlier version the op writes over.
    std::vector<std::uint32_t> in_place;
    std::vector<std::uint32_t> merged; ///< temporaries that a collective merges
    bool is_collective = false;
  };

  /// Adds the op whose mailbox is the next one.
  void add(const op& next) {
    const auto append = [this](const std::vector<std::uint32_t>& temporaries) {
      temporaries_.insert(temporaries_.end(), temporaries.begin(),
                          temporaries.end());
      return static_cast<std::uint32_t>(temporaries_.size());
    };
    const auto begin = static_cast<std::uint32_t>(temporaries_.size());
    const auto in_place = append(next.allocated);
    const auto merged = append(next.in_place);
    const auto end = append(next.merged);
    ranges_.push_back({begin, in_place, merged, end, next.is_collective});
  }

  ///@{ @param index of the op's mailbox
  bool is_collective(std::size_t index) const noexcept {
    return ranges_[index].is_collective;
  }
  std::span<const std::uint32_t> allocated(std::size_t index) const noexcept {
    return between(ranges_[index].begin, ranges_[index].in_place);
  }
  std::span<const std::uint32_t> in_place(std::size_t index) const noexcept {
    return between(ranges_[index].in_place, ranges_[index].merged);
  }
  std::span<const std::uint32_t> merged(std::size_t index) const noexcept {
    return between(ranges_[index].merged, ranges_[index].end);
  }
  ///@}

private:
  struct range {
    std::uint32_t begin;
    std::uint32_t in_place; ///< where those written in place begin
    std::uint32_t merged;   ///< where those that are merged begin
    std::uint32_t end;
    bool is_collective;
  };

  std::span<const std::uint32_t> between(std::uint32_t begin,
                                         std::uint32_t end) const noexcept {
    return {temporaries_.data() + begin, end - begin};
  }

  std::vector<range> ranges_; // by mailbox
  std::vector<std::uint32_t> temporaries_;
};

} // namespace troupe::actors
