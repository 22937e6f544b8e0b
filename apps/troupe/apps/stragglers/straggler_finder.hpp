// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/stragglers/op_digest.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace troupe::apps {

/// A rank whose ops take longer than those of the others.
struct straggler {
  std::size_t rank = 0;
  std::string type;     ///< empty: all ops of the rank are slower
  std::string output;   ///< of one op (`op_key`); empty: all ops of the type
  double factor = 1;    ///< times the others' time
  double ms = 0;        ///< medians of the ops' runs, added up
  double others_ms = 0; ///< the same of the other ranks
  std::size_t runs = 0; ///< of an op
};

/// "rank 1 is slow: conv2d#4@cpu:1 takes 1.20 times as long as on rank 0 (1.57
/// against 1.31 ms, medians of 10 runs)".
/// @param op the name of the op, if it is one
std::string text_of(const straggler& found, std::size_t ranks,
                    const std::string& op);

/// Compares the ranks of a job, window by window.
///
/// It compares each op, the ops of each type together, and all ops of a rank
/// together, with those of all other ranks. One of these differs in a window if
///
/// - its median is at least a tenth above that of the others; of several ops,
///   three quarters of the medians are;
/// - the quartile ranges of the times do not overlap: an op whose time varies
///   must be slower by more than it varies;
/// - the rank test of Mann and Whitney gives p < 0.005.
///
/// It is named if it differs in four windows in a row, once until it is no
/// longer slow. On a machine with other programs, an op can take a quarter
/// longer for some dozen steps, and some ops do so again and again. So each
/// time that an op differs for fewer windows, it needs one more; that is
/// forgotten after a hundred windows.
///
/// Times are divided by the factor of what is larger, a slow type or the rank:
/// so a slow core makes a slow rank, not slow ops. Ops of a slow type are not
/// named. The time that threads wait for cores is no slowness of ops: a rank
/// that is preempted for more than a twentieth of its time is not called slow
/// as a whole.
///
/// Thread rule: one thread.
class straggler_finder {
public:
  explicit straggler_finder(std::size_t ranks)
    : ranks_(ranks), suspicions_(ranks) {}

  /// Takes the digests of all ranks for the next window, by rank. Returns who
  /// is to be named.
  std::vector<straggler> add(const std::vector<op_digest>& window);

  /// Windows that must agree before something is named.
  static constexpr std::size_t windows_in_a_row = 4;

private:
  /// What speaks against an op, a type or a rank.
  struct suspicion {
    std::size_t windows = 0; // in a row, in which it was slow
    double false_starts = 0;
    bool is_told = false;

    bool see_slow(bool is_covered);
    void see_not_slow();
    bool is_nothing() const { return windows == 0 && false_starts <= 0; }
  };

  std::size_t ranks_;
  // By rank; the key is what `straggler` has as type and output.
  std::vector<std::map<op_key, suspicion>> suspicions_;
};

} // namespace troupe::apps
