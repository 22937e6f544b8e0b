// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::apps {

/// Where a run stands.
struct progress_state {
  std::uint64_t step = 0;  ///< steps done
  std::uint64_t steps = 0; ///< steps in all
  double loss = 0;         ///< of the last step
  double samples_per_s = 0;
  /// Until all steps are done, as far as one can tell.
  std::optional<double> seconds_left = std::nullopt;
};

/// Tells how long the rest of a run takes if its steps take as long, on
/// average, as those behind the first one that it was told of: what comes
/// before a first step, and it itself, take longer than others.
class remaining_time {
public:
  /// @param now_ns when `step` of `steps` steps were done
  /// Seconds; nothing until a second step is done.
  std::optional<double> after(std::uint64_t now_ns, std::uint64_t step,
                              std::uint64_t steps);

private:
  std::optional<std::uint64_t> first_ns_;
  std::uint64_t first_step_ = 0;
};

/// Tells people on stderr how long work goes: a bar that is redrawn at most
/// ten times a second on a terminal; elsewhere a plain line at most every ten
/// seconds.
class progress {
public:
  progress();
  /// @param terminal draw a bar
  explicit progress(bool terminal);
  ~progress(); ///< removes the bar

  /// Call it after each step; says how long the rest takes.
  void update(progress_state state);
  /// Prints a line of its own, the bar stays below.
  void note(std::string_view line);

private:
  void clear();

  bool terminal_;
  remaining_time remaining_;
  bool drawn_ = false;
  std::uint64_t last_ns_;
};

/// "[=====>    ] 312/564  loss 0.1234  18000 samples/s  1:05 left", the bar
/// `cells` wide.
std::string progress_bar(const progress_state& state, int cells);

} // namespace troupe::apps
