// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/rate_limit.hpp>
#include <troupe/dashboard/server/web_server.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <deque>

using namespace troupe::dashboard;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.rate_limit") {

namespace {

const rate_limit::time_point start{1h};

/// Connections that come faster than a server takes them, as seen by a clock.
struct crowd {
  int served = 0, turned_away = 0;
  std::chrono::nanoseconds longest_wait{0};
};

/// One comes every `between` for `time`; the server looks when ten may enter.
crowd served_crowd(const web_server_options& options,
                   std::chrono::nanoseconds between,
                   std::chrono::nanoseconds time) {
  rate_limit limit{static_cast<double>(options.connections_at_once),
                   options.connections_per_second};
  crowd all;
  std::deque<rate_limit::time_point> waiting;
  auto next_look = start;
  for (auto now = start; now < start + time || !waiting.empty();
       now += between) {
    if (now < start + time) {
      if (static_cast<int>(waiting.size()) < options.connections_waiting)
        waiting.push_back(now);
      else
        ++all.turned_away;
    }
    if (now < next_look)
      continue;
    for (; !waiting.empty() && limit.allows(now); waiting.pop_front()) {
      ++all.served;
      all.longest_wait = std::max(all.longest_wait, now - waiting.front());
    }
    next_look = now + limit.time_until(10, now);
  }
  return all;
}

} // namespace

TEST_CASE("some are allowed at once, then so many per second") {
  rate_limit limit{3, 10};
  for (int i = 0; i < 3; ++i)
    CHECK(limit.allows(start));
  CHECK_FALSE(limit.allows(start + 99ms));
  CHECK(limit.allows(start + 100ms));
  CHECK_FALSE(limit.allows(start + 100ms));
}

TEST_CASE("what is not used is kept up to what is allowed at once") {
  rate_limit limit{3, 10};
  CHECK(limit.allows(start));
  for (int i = 0; i < 3; ++i)
    CHECK(limit.allows(start + 1h));
  CHECK_FALSE(limit.allows(start + 1h));
}

TEST_CASE("it says how long it is until so many are allowed") {
  rate_limit limit{4, 10};
  CHECK(limit.time_until(4, start) == 0ns);
  for (int i = 0; i < 4; ++i)
    CHECK(limit.allows(start));
  CHECK(limit.time_until(1, start) == 100ms);
  CHECK(limit.time_until(4, start) == 400ms);
  CHECK(limit.time_until(4, start + 150ms) == 250ms);
  for (int i = 0; i < 4; ++i)
    CHECK(limit.allows(start + 400ms));
}

TEST_CASE("a clock that stands still allows no more") {
  rate_limit limit{1, 10};
  CHECK(limit.allows(start));
  CHECK_FALSE(limit.allows(start));
  CHECK_FALSE(limit.allows(start - 1h));
}

TEST_CASE("of a crowd, a server takes few, and whoever waits has a turn soon") {
  const web_server_options options;
  const auto all = served_crowd(options, 300us, 3s);
  CHECK(all.served <= 64 + 100 * 3 + options.connections_waiting);
  CHECK(all.turned_away > 5000);
  CHECK(all.longest_wait < 1100ms);
}

TEST_CASE("a page and its files enter at once") {
  CHECK(served_crowd({}, 1ms, 30ms).longest_wait == 0ms);
}
} // TEST_SUITE("dashboard.rate_limit")
