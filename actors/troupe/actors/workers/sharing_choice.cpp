// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/sharing_choice.hpp>

#include <algorithm>

namespace troupe::actors {

namespace {

/// A way must be faster by this factor to replace the other one.
constexpr double clearly_faster = 0.95;
/// A trial ends at once if a step takes this much longer than with the other
/// way.
constexpr std::uint64_t clearly_slower = 2;

} // namespace

void sharing_choice::took(std::uint64_t step_ns, bool is_short) noexcept {
  // Sharing short ops can make a step long; the trial then fails.
  if (!is_short && !is_trial_) {
    start_over();
    return;
  }
  auto& least = least_ns(way_);
  least = std::min(least, step_ns);
  if (is_trial_ && step_ns > clearly_slower * least_ns(other_way()))
    end_trial();
  else if (--steps_left_ > 0)
    return;
  else if (is_trial_)
    end_trial();
  else if (way_ == op_sharing::long_ops)
    keep(op_sharing::no_ops, trial_steps);
  else
    try_other_way();
}

void sharing_choice::start_over() noexcept {
  way_ = op_sharing::long_ops;
  is_trial_ = false;
  steps_left_ = short_steps_before_trials;
  steps_kept_ = fewest_steps_kept;
}

void sharing_choice::keep(op_sharing way, std::uint32_t steps) noexcept {
  way_ = way;
  is_trial_ = false;
  steps_left_ = steps;
  least_ns(way) = UINT64_MAX;
}

void sharing_choice::try_other_way() noexcept {
  keep(other_way(), trial_steps);
  is_trial_ = true;
}

void sharing_choice::end_trial() noexcept {
  const auto before = other_way();
  if (static_cast<double>(least_ns(way_))
      < clearly_faster * static_cast<double>(least_ns(before))) {
    steps_kept_ = fewest_steps_kept;
    keep(way_, steps_kept_);
  } else {
    keep(before, steps_kept_);
    steps_kept_ = std::min(2 * steps_kept_, most_steps_kept);
  }
}

} // namespace troupe::actors
