// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/sampling.hpp>

#include <troupe/base/clock.hpp>

#include <malloc.h>

#include <cstdint>

namespace troupe::apps {

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
