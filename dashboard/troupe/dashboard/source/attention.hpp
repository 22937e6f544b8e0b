// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>

namespace troupe::dashboard {

/// Until when programs that ask now and then count as somebody who looks. A
/// scraper of `/metrics` does from one scrape to the next, so that all that
/// happens between them is counted.
///
/// Thread rule: one thread at a time.
class attention {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// The longest interval at which Prometheus calls a value current.
  static constexpr std::chrono::minutes of_scraper{5};
  static constexpr std::chrono::seconds of_question{5};

  /// Somebody has asked for a path.
  void note(std::string_view path, time_point now) {
    if (path == "/metrics")
      until_ = std::max(until_, now + of_scraper);
    else
      until_ = std::max(until_, now + of_question);
  }
  bool is_there(time_point now) const noexcept { return now < until_; }

private:
  time_point until_{};
};

} // namespace troupe::dashboard
