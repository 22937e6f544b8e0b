// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace troupe::dashboard {

/// Allows something some times at once, and then so often per second, by all
/// clients together. What is not used is kept for later, up to that number.
///
/// Thread rule: one thread at a time.
class rate_limit {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Both are at least 1.
  rate_limit(double at_once, double per_second)
    : at_once_(at_once), per_second_(per_second), left_(at_once) {}

  /// Counts one time if it is allowed. False if it is not.
  bool allows(time_point now);
  /// How long it is until the next `number` times are allowed.
  /// @param number from 1 to `at_once`
  std::chrono::nanoseconds time_until(double number, time_point now);

private:
  void refill(time_point now);

  double at_once_, per_second_;
  double left_;
  time_point filled_{}; ///< when `left_` was true; the epoch: never
};

} // namespace troupe::dashboard
