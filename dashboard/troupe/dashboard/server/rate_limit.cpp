// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/rate_limit.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::dashboard {

void rate_limit::refill(time_point now) {
  if (now <= filled_)
    return;
  const std::chrono::duration<double> passed = now - filled_;
  left_ = std::min(at_once_, left_ + passed.count() * per_second_);
  filled_ = now;
}

bool rate_limit::allows(time_point now) {
  refill(now);
  if (left_ < 1)
    return false;
  left_ -= 1;
  return true;
}

std::chrono::nanoseconds rate_limit::time_until(double number, time_point now) {
  refill(now);
  const auto seconds = std::max(0.0, number - left_) / per_second_;
  return std::chrono::nanoseconds{
    static_cast<std::chrono::nanoseconds::rep>(std::ceil(seconds * 1e9))};
}

} // namespace troupe::dashboard
