// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::actors {

/// Says which steps share an update of the parameters: their *period*.
///
/// Thread rule: the executor's thread.
class update_periods {
public:
  /// @param steps of a period, at least 1
  explicit update_periods(std::uint32_t steps) : steps_(steps) {}

  ///@{
  /// Whether the next step is the first, and the last, of its period.
  bool next_begins() const noexcept { return done_ == 0; }
  bool next_ends() const noexcept { return ends_early_ || done_ + 1 >= steps_; }
  ///@}
  /// Makes the next step the last of its period.
  void end_with_next() noexcept { ends_early_ = true; }
  /// The next step has been admitted; the one after it is the next now.
  void admitted() noexcept {
    done_ = next_ends() ? 0 : done_ + 1;
    is_spoiled_ &= done_ > 0;
    ends_early_ = false;
  }
  /// The next step begins a period.
  void begin_anew() noexcept {
    done_ = 0;
    is_spoiled_ = false;
  }

  /// A step has failed, which may be of the current period. Other processes
  /// cannot be made to begin a period at the same step, so this one stays: its
  /// other steps must fail, too.
  void spoil() noexcept { is_spoiled_ = done_ > 0; }
  /// True if the next step must fail.
  bool is_spoiled() const noexcept { return is_spoiled_; }

private:
  std::uint32_t steps_;
  std::uint32_t done_ = 0; // steps of the current period, all admitted
  bool is_spoiled_ = false;
  bool ends_early_ = false;
};

} // namespace troupe::actors
