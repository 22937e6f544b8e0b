// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/training_watch.hpp>

#include <troupe/base/quoted_name.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace troupe::apps {

std::unique_ptr<step_watchdog> watch_steps(executor& exe, double seconds,
                                           flight_dumps& dumps,
                                           const watchdog_context& about) {
  if (seconds <= 0)
    return nullptr;
  return std::make_unique<step_watchdog>(
    exe, std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)},
    [&exe, &dumps](const std::string& what) {
      std::fprintf(stderr, "%s\n", one_line(what).c_str());
      dumps.dump(exe, flight_dumps::cause::slow_step);
    },
    about);
}

} // namespace troupe::apps
