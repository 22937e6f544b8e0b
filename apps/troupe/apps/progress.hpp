// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::apps {

/// Where a run stands.
struct progress_state {
  std::uint64_t step = 0;  ///< steps done
  std::uint64_t steps = 0; ///< steps in all
  double loss = 0;         ///< of the last step
  double samples_per_s = 0;
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

  void update(const progress_state& state);
  /// Prints a line of its own, the bar stays below.
  void note(std::string_view line);

private:
  void clear();

  bool terminal_;
  bool drawn_ = false;
  std::uint64_t last_ns_;
};

/// "[=====>    ] 312/564 loss 0.1234, 18000 samples/s", the bar `cells` wide.
std::string progress_bar(const progress_state& state, int cells);

} // namespace troupe::apps
