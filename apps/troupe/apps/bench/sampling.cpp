// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/sampling.hpp>

#include <troupe/base/clock.hpp>

#include <malloc.h>

#include <algorithm>
#include <cmath>

namespace troupe::apps {

double samples::quantile(double p) const {
  auto sorted = ns_;
  std::sort(sorted.begin(), sorted.end());
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(p * last))];
}

double heap_bytes() {
  const auto info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

double time_of(const std::function<void()>& work, double at_least_ns) {
  const auto start = now_ns();
  double elapsed = 0;
  std::uint64_t calls = 0;
  do {
    work();
    ++calls;
    elapsed = static_cast<double>(now_ns() - start);
  } while (elapsed < at_least_ns);
  return elapsed / static_cast<double>(calls);
}

} // namespace troupe::apps
