// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// What the ops of a rank took in the steps of a window.
struct op_digest {
  /// Ops of a type.
  struct row {
    std::string type;
    std::vector<float> ms; ///< by step: of all ops of the type together
  };
  std::vector<row> rows;
  /// Share of its threads' time, between 0 and 1, in which they were ready and
  /// had no core.
  float preempted = 0;
};

/// As text, which is short. Any other text makes `read_digest` return nothing.
std::string write_digest(const op_digest& digest);
std::optional<op_digest> read_digest(const std::string& text);

/// A rank whose ops take longer than those of the others.
struct straggler {
  std::size_t rank = 0;
  std::string type;     ///< empty: all ops of the rank are slower
  double factor = 1;    ///< times the others' time
  double ms = 0;        ///< per step, in the median
  double others_ms = 0; ///< the same of the other ranks together
  std::size_t steps = 0;
};

/// "rank 1 is slow: conv2d takes 1.20 times as long as on rank 0 (14.1 against
/// 11.8 ms per step over 20 steps)".
std::string text_of(const straggler& found, std::size_t ranks);

/// Compares the ranks of a job, window by window.
///
/// The time of a type of ops on a rank is compared with those of all other
/// ranks, after division by how much slower the rank is in the median over its
/// types: so a slow core makes a slow rank, not slow ops. A type differs in a
/// window if its median is at least a tenth above that of the others and the
/// rank test of Mann and Whitney, corrected for the number of comparisons,
/// gives less than one in ten thousand. It is named if it differs in two
/// windows in a row, once until it is no longer slow. The time that threads
/// wait for cores is no slowness of ops: a rank that is preempted for more than
/// a twentieth of its time is not called slow as a whole.
///
/// Thread rule: one thread.
class straggler_finder {
public:
  explicit straggler_finder(std::size_t ranks)
    : ranks_(ranks), suspects_(ranks) {}

  /// Takes the digests of all ranks for the next window, by rank. Returns who
  /// is to be named.
  std::vector<straggler> add(const std::vector<op_digest>& window);

private:
  struct suspect {
    std::string type; ///< empty: the whole rank
    bool is_told = false;
  };
  std::vector<straggler> differences(const std::vector<op_digest>& all,
                                     std::size_t rank) const;

  std::size_t ranks_;
  std::vector<std::vector<suspect>> suspects_; // by rank, of the last window
};

} // namespace troupe::apps
