// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// Which processes are the ranks of an elastic job. A process has a place from
/// 0 on, in which another follows it if it ends, and a number that no other
/// has. Each change begins a new epoch (comm/job_epoch.hpp).
///
/// Thread rule: one thread.
class job_members {
public:
  using clock = std::chrono::steady_clock;

  /// Writes the first epoch into the folder, with a process in each place.
  job_members(std::string folder, std::size_t places);

  std::uint64_t number_in(std::size_t place) const {
    return places_[place].number;
  }
  std::size_t living() const noexcept { return order_.size(); }

  /// False if the processes of this place have ended early again and again.
  bool may_start_again(std::size_t place, clock::time_point now);
  /// The process of a place has ended, and another is to follow it, whose
  /// number this returns.
  std::uint64_t replace(std::size_t place, clock::time_point now);
  /// True if no step has been done in many epochs in a row.
  bool makes_no_progress() const;
  /// The process of a place has ended for good.
  void remove(std::size_t place);
  /// Begins an epoch with those that live. Throws error(io_failure).
  void begin_epoch();

  /// Looks which processes have told that the epoch has ended for them. If all
  /// have, begins another one. Returns the places of those that have not for
  /// some seconds, while others have: they are stopped or hang.
  std::vector<std::size_t> look_for_silent(clock::time_point now);

private:
  struct place {
    std::uint64_t number = 0;
    bool lives = true;
    clock::time_point started;
    int early_ends = 0; ///< in a row
  };

  std::string folder_;
  std::uint64_t epoch_ = 0;
  std::uint64_t next_number_ = 0;
  int idle_epochs_ = 0; // in a row, in which no step was done
  std::vector<place> places_;
  std::vector<std::uint64_t> order_; // of those that live, the oldest first
  std::optional<clock::time_point> told_since_;
};

} // namespace troupe::apps
