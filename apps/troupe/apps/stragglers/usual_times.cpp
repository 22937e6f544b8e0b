// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/usual_times.hpp>

#include <troupe/base/clock.hpp>

#include <cstdint>

namespace troupe::apps {

namespace {

std::chrono::nanoseconds of_ms(double ms) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(ms * ns_per_ms)};
}

} // namespace

void usual_times::set_own(const op_digest& window) {
  std::lock_guard guard{mutex_};
  for (auto& row : window.rows)
    if (!row.ms.empty())
      times_[row.op].median = of_ms(median_ms(row));
}

void usual_times::set_fastest(const std::vector<fastest_rank>& all) {
  std::lock_guard guard{mutex_};
  for (auto& row : all) {
    auto& of = times_[row.op];
    of.fastest = of_ms(row.ms);
    of.fastest_rank = row.rank;
  }
}

usual_time usual_times::of(const op_key& op) const {
  std::lock_guard guard{mutex_};
  const auto found = times_.find(op);
  return found == times_.end() ? usual_time{} : found->second;
}

} // namespace troupe::apps
