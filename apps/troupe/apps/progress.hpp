// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::apps {

/// How far a run has come.
struct progress_state {
  std::uint64_t step = 0;  ///< steps done
  std::uint64_t steps = 0; ///< total number of steps
  double loss = 0;         ///< of the last step
  double samples_per_s = 0;
  /// Estimated time until all steps are done.
  std::optional<double> seconds_left = std::nullopt;
};

/// Estimates the remaining time of a run from the average of its steps so far.
/// The first step that it is told about and everything before it do not count,
/// because they take longer.
class remaining_time {
public:
  /// Returns seconds; empty until a second step is done.
  /// @param now_ns time at which `step` of `steps` steps were done
  std::optional<double> after(std::uint64_t now_ns, std::uint64_t step,
                              std::uint64_t steps);

private:
  std::optional<std::uint64_t> first_ns_;
  std::uint64_t first_step_ = 0;
};

/// Shows the progress of a run on stderr. On a terminal it is a bar, redrawn at
/// most ten times per second; otherwise a plain line at most every ten seconds.
class progress {
public:
  enum class form { nothing, lines, bar };

  progress(); ///< a bar on a terminal, otherwise lines
  explicit progress(form shown);
  ~progress(); ///< removes the bar

  /// Call it after each step. Adds the remaining time.
  void update(progress_state state);
  /// Prints a separate line; the bar is redrawn below it.
  void note(std::string_view line);

private:
  void clear();

  form form_;
  remaining_time remaining_;
  bool drawn_ = false;
  std::uint64_t last_ns_;
};

/// "[=====>    ] 312/564  loss 0.1234  18000 samples/s  1:05 left", the bar
/// `cells` wide.
std::string progress_bar(const progress_state& state, int cells);

} // namespace troupe::apps
