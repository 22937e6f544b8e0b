// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/stragglers/op_times.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// What the ops of a rank took in the steps of a window.
struct op_digest {
  struct row {
    op_key op;
    std::vector<float> ms; ///< of its runs
  };
  std::vector<row> rows;
  /// Share of its threads' time, between 0 and 1, in which they were ready and
  /// had no core.
  float preempted = 0;
  std::uint64_t window = 0; ///< its number, the same on all ranks
};

/// The median of an op's times.
double median_ms(const op_digest::row& row);

///@{
/// As a text that is no longer than a note may be (`executor::send_note`): ops
/// with the longest times come first, and the last ones may lack. Any other
/// text makes `read_digest` return nothing.
std::string write_digest(const op_digest& digest);
std::optional<op_digest> read_digest(const std::string& text);
///@}

/// Which rank is the fastest at an op.
struct fastest_rank {
  op_key op;
  std::size_t rank = 0;
  float ms = 0; ///< its median
};

/// By op, of a window of all ranks.
std::vector<fastest_rank> fastest_of(const std::vector<op_digest>& window);

///@{
/// As `write_digest` and `read_digest`.
std::string write_fastest(const std::vector<fastest_rank>& all);
std::optional<std::vector<fastest_rank>> read_fastest(const std::string& text);
///@}

} // namespace troupe::apps
