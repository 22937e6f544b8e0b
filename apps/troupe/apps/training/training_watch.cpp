// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/training_watch.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/base/quoted_name.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace troupe::apps {

void tell_on_stderr(const std::string& what) {
  std::fprintf(stderr, "%s\n", one_line(what).c_str());
}

void measure_ops(executor_options& options, op_times& times) {
  options.kernels = times.wrapped(
    options.kernels ? *options.kernels : kernels_for(options.devices),
    options.devices.front().kind);
}

std::unique_ptr<straggler_watch> watch_ranks(executor& exe, op_times& times,
                                             const rank_part& part,
                                             tell_user tell) {
  return std::make_unique<straggler_watch>(straggler_watch::parts{
    &exe, &times, part.rank(), part.size(), std::move(tell)});
}

std::unique_ptr<step_watchdog> watch_steps(executor& exe, double seconds,
                                           flight_dumps& dumps,
                                           watchdog_context about,
                                           tell_user tell) {
  if (seconds <= 0)
    return nullptr;
  about.stalled = [&exe, &dumps] {
    dumps.dump(exe, flight_dumps::cause::slow_step);
  };
  return std::make_unique<step_watchdog>(
    exe, std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)},
    std::move(tell), std::move(about));
}

} // namespace troupe::apps
