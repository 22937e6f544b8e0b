// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/clock_pair.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

TEST_SUITE("base.clock_pair") {

using namespace troupe;

namespace {

/// Time that passes only where a test says so: two clocks, which differ by
/// 1,000, are read one after the other, and before each reading passes what
/// `before` says.
struct passing_time {
  std::vector<std::uint64_t> before;
  std::uint64_t now = 0;
  std::size_t reading = 0;

  std::uint64_t read() { return now += before[reading++ % before.size()]; }
};

} // namespace

TEST_CASE(
  "two clocks are read at one moment though the thread loses its core") {
  // The core is lost between the readings of the first three tries, on either
  // side of the inner clock.
  passing_time time{{1, 50'000, 1, 1, 1, 70'000, 1, 30'000, 30'000, 1, 2, 2}};
  const auto read = read_together([&] { return time.read(); },
                                  [&] { return time.read() + 1'000; });
  CHECK(read.inner == read.outer + 1'000);
  CHECK(read.outer == 180'008);
}

TEST_CASE("the host's clock at a moment is that of the moment, not of now") {
  const auto moment = now_ns();
  const auto begin = unix_now_ns();
  while (now_ns() - moment < 2'000'000) {
  }
  const auto found = unix_ns_at(moment);
  // Both were read one after the other; a thread may lose its core between.
  CHECK(found <= begin + 1'000);
  CHECK(found > begin - 1'000'000'000);
}

} // TEST_SUITE("base.clock_pair")
