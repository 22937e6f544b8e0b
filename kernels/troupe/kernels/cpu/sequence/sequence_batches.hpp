// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::cpu {

/// Rows of sequences ordered by time: first all first rows, then all second
/// rows, and so on, with longer sequences before shorter ones. So each step is
/// one matrix, and its rows continue the first rows of the previous step.
class sequence_batches {
public:
  /// @param reverse sequences run from their last row to their first
  sequence_batches(const std::vector<std::uint64_t>& offsets, bool reverse);

  std::int64_t steps() const noexcept {
    return static_cast<std::int64_t>(starts_.size()) - 1;
  }
  /// The first row of a step in the order by time.
  std::int64_t start(std::int64_t step) const {
    return starts_[static_cast<std::size_t>(step)];
  }
  std::int64_t size(std::int64_t step) const {
    return start(step + 1) - start(step);
  }
  std::int64_t rows() const noexcept { return starts_.back(); }

  /// out[row by time] = x[row of the sequences]
  void gather(float* out, const float* x, std::int64_t width) const;
  /// out[row of the sequences] = x[row by time]
  void scatter(float* out, const float* x, std::int64_t width) const;

  /// Reorder one row per sequence (initial states): longest sequence first, and
  /// back.
  void gather_sequences(float* out, const float* x, std::int64_t width) const;
  void scatter_sequences(float* out, const float* x, std::int64_t width) const;
  std::int64_t num_sequences() const noexcept {
    return static_cast<std::int64_t>(order_.size());
  }

private:
  std::vector<std::int64_t> order_;  ///< sequences, longest first
  std::vector<std::int64_t> starts_; ///< per step, then the end
  /// for each row by time, its row in the sequences
  std::vector<std::int64_t> rows_;
};

} // namespace troupe::cpu
