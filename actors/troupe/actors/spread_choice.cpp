// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/spread_choice.hpp>

#include <algorithm>
#include <limits>

namespace troupe::actors {

namespace {

constexpr auto no_time = std::numeric_limits<std::uint64_t>::max();

} // namespace

spread_choice::spread_choice(std::size_t ops) noexcept
  : longest_step_ns_(longest_op_ns * ops), least_ns_{no_time, no_time} {}

void spread_choice::took(std::uint64_t step_ns) noexcept {
  if (++steps_ <= settling_steps)
    return;
  least() = std::min(least(), step_ns);
  if (trying_) {
    // The rest of a trial that is far behind would be lost time.
    if (steps_ >= trial_steps || step_ns / 2 > least_other())
      end_trial();
  } else if (gathered_ && step_ns > longest_step_ns_) {
    // Ops have become longer: each further step would be lost time too.
    steps_between_ = fewest_steps_between;
    move();
  } else if (steps_ >= steps_between_) {
    begin_trial();
  }
}

void spread_choice::move() noexcept {
  gathered_ = !gathered_;
  least() = no_time;
  steps_ = 0;
}

void spread_choice::begin_trial() noexcept {
  if (least() > longest_step_ns_) {
    least() = no_time;
    steps_ = settling_steps;
    return;
  }
  trying_ = true;
  move();
}

void spread_choice::end_trial() noexcept {
  trying_ = false;
  steps_between_ = std::min(2 * steps_between_, most_steps_between);
  if (least() < least_other()) {
    steps_ = settling_steps;
  } else {
    move();
  }
}

} // namespace troupe::actors
