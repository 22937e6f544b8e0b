// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/disturbance.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/spin.hpp>

#include <chrono>
#include <thread>

namespace troupe::actors {

namespace {

/// Sleeping takes longer than requested, so shorter delays spin.
constexpr std::uint64_t shortest_sleep_us = 100;

void pass_time(std::uint64_t us) {
  if (us >= shortest_sleep_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    return;
  }
  for (const auto until = now_ns() + 1000 * us; now_ns() < until;)
    relax();
}

} // namespace

void disturbance::hold_up(handle_id op, step_id step) const {
  if (!wanted_.seed || wanted_.max_delay_us == 0)
    return;
  auto draw = draws_for(op, ~step);
  if (draw.below(8) == 0)
    pass_time(draw.below(wanted_.max_delay_us + 1));
}

} // namespace troupe::actors
