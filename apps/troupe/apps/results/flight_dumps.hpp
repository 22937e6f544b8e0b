// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <array>
#include <cstdint>
#include <mutex>

namespace troupe::apps {

/// Writes what the flight recorder of a run holds, and says so in a line on
/// stderr. If a file cannot be written, that line is a warning.
///
/// Thread rule: any thread.
class flight_dumps {
public:
  enum class cause : std::uint8_t {
    slow_step,   ///< the watchdog has told of a step
    failed_step, ///< a step has failed
    request,     ///< somebody wants to look
  };

  /// Writes a dump, unless the run has one for this cause; each request has its
  /// own. Writes none if nothing is recorded.
  void dump(executor& exe, cause why) noexcept;

private:
  std::mutex mutex_;
  std::array<bool, 2> has_{}; // by cause
};

} // namespace troupe::apps
