// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::cpu {

/// Rows of sequences ordered by time: all first rows, then all second ones,
/// longer sequences before shorter ones. So the rows of a step that continue a
/// sequence are the first rows of the step before, and each step is one matrix.
class sequence_batches {
public:
  /// @param reverse sequences run from their last row to their first
  sequence_batches(const std::vector<std::uint64_t>& offsets, bool reverse);

  std::int64_t steps() const noexcept {
    return static_cast<std::int64_t>(starts_.size()) - 1;
  }
  /// First row of a step in the order by time.
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

  /// Sequences, longest first, one row each (initial states).
  void gather_sequences(float* out, const float* x, std::int64_t width) const;
  void scatter_sequences(float* out, const float* x, std::int64_t width) const;
  std::int64_t num_sequences() const noexcept {
    return static_cast<std::int64_t>(order_.size());
  }

private:
  std::vector<std::int64_t> order_;  ///< sequences, longest first
  std::vector<std::int64_t> starts_; ///< per step, and the end
  std::vector<std::int64_t> rows_;   ///< by time: row of the sequences
};

} // namespace troupe::cpu
