// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/stragglers/op_digest.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// A rank whose ops take longer than those of the others.
struct straggler {
  std::size_t rank = 0;
  std::string type;     ///< empty: all ops of the rank are slower
  std::string output;   ///< of one op (`op_key`); empty: all ops of the type
  double factor = 1;    ///< times the others' time
  double ms = 0;        ///< lower quartiles of the ops' runs, added up
  double others_ms = 0; ///< the same of the other ranks
  std::size_t runs = 0; ///< of an op
};

/// "rank 1 is slow: conv2d#4@cpu:1 takes 1.20 times as long as on rank 0 (1.57
/// against 1.31 ms, lower quartiles of 10 runs)".
/// @param op the name of the op, if it is one
std::string text_of(const straggler& found, std::size_t ranks,
                    const std::string& op);

/// What a window says of an op, a type or a rank.
struct slowness_evidence {
  double excess = 0;       ///< logarithm of the factor
  double least = 0;        ///< milliseconds of the fastest run
  double others_least = 0; ///< the same of the other ranks
  /// Something else may be why it is slow: its type, or what takes its rank's
  /// cores. It keeps its windows, and is named if it is slow without that.
  bool is_covered = false;
};

/// Compares the ranks of a job, window by window.
///
/// It compares each op, the ops of each type together, and all ops of a rank
/// together, with those of all other ranks. One of these differs in a window if
///
/// - its lower quartile is at least a tenth above that of the others; of
///   several ops, three quarters of the lower quartiles are. What disturbs a
///   run makes it longer, so the faster runs say more of the op than the
///   median;
/// - three quarters of its times are above half of the others': an op whose
///   time varies must be slower by more than it varies;
/// - the rank test of Mann and Whitney gives p < 0.006, without the slowest
///   three tenths of the runs on each side: a burst of load may have made them
///   longer.
///
/// It is named, once until it is no longer slow, if it differs in four windows
/// by at least three times as much as it usually varies from window to window;
/// or, if by less, in 25 windows. Of these windows, no two in a row may
/// disagree. What a window that disagrees says counts as how the op varies only
/// when it is known whether the op stays slow: also of the one before the
/// first. Some ops, such as those whose data just fit into a cache, take a
/// quarter longer for some dozen steps, again and again, now on this rank and
/// now on that one. An op that competes with those of another rank has fast
/// runs between slow ones. So in the latest five windows, also the fastest of
/// all runs must be a twentieth slower than that of the others.
///
/// Times are divided by the factor of what is larger, a slow type or the rank:
/// so a slow core makes a slow rank, not slow ops. Ops of a slow type are not
/// named. The time that threads wait for cores is no slowness of ops, and
/// afterwards the caches have other data, which slows some ops more than
/// others: in a window in which a rank is preempted for more than 15 % of its
/// time, the rank is not named, nor a type or an op that takes less than 1.5
/// times as long.
///
/// Thread rule: one thread.
class straggler_finder {
public:
  explicit straggler_finder(std::size_t ranks) : ranks_(ranks), rows_(ranks) {}

  /// Takes the digests of all ranks for the next window, by rank. Returns who
  /// is to be named.
  std::vector<straggler> add(const std::vector<op_digest>& window);

  ///@{
  /// Windows that must agree before something is named: if it stands out from
  /// how it usually varies, and if it does not.
  static constexpr std::size_t least_windows = 4;
  static constexpr std::size_t most_windows = 25;
  ///@}

private:
  /// How an op, a type or a rank varies from window to window when it is not
  /// slow: the variance of the factor's logarithm.
  struct variation {
    double variance = 0;
    double windows = 0;
    void add(double excess);
  };
  /// Windows in which something was slow, with at most one other between two
  /// of them.
  class slow_row {
  public:
    /// @param before the excess in the window before, which disagrees
    explicit slow_row(std::optional<double> before);
    /// Adds a window. True if it is to be named.
    bool add(const slowness_evidence& window, const variation& usual);
    /// In this window, it was not slow, or little is known of it. True if the
    /// row ends: its windows are then part of how it usually varies, but for
    /// those that led to a name.
    bool skip(const slowness_evidence* window, variation& usual);

  private:
    void remember(const slowness_evidence& window);
    bool is_never_fast() const;
    bool stands_out(const variation& usual) const;

    std::vector<double> excesses_;
    std::vector<double> skipped_;          // of windows that disagree
    std::deque<slowness_evidence> latest_; // also of windows that disagree
    bool has_skipped_ = false;             // the latest window
    bool is_told_ = false;
  };

  /// What is or may become slow on a rank.
  struct rank_rows {
    std::map<op_key, slow_row> rows;
    /// Without a row: the excess in the latest window, which is not part of
    /// `usual_` yet.
    std::map<op_key, double> before;
    std::optional<double> take_before(const op_key& what);
  };

  std::size_t ranks_;
  // The keys are what `straggler` has as type and output.
  std::map<op_key, variation> usual_; // of all ranks
  std::vector<rank_rows> rows_;       // by rank
};

} // namespace troupe::apps
