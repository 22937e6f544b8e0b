// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/summary_text.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace troupe;
using namespace troupe::apps;

TEST_SUITE("apps.summary_text") {

namespace {

/// What is told of some parcels of so many bytes each, of which each took so
/// long.
std::string told(std::size_t count, std::uint64_t bytes, std::uint64_t ns) {
  trace::op_wait wait;
  wait.parcels = count;
  wait.bytes = count * bytes;
  wait.travel_ns = count * ns;
  return parcels_text(wait);
}

} // namespace

TEST_CASE("parcels have a rate with a unit that fits") {
  CHECK(told(3, 4096, 1000) == ", parcels of 4.0 KiB at 4.1 GB/s");
  CHECK(told(1, 1 << 20, 10'000'000) == ", parcels of 1.0 MiB at 104.9 MB/s");
  CHECK(told(2, 8192, 40'000'000) == ", parcels of 8.0 KiB at 204.8 kB/s");
}

TEST_CASE("small parcels have a time and no rate") {
  CHECK(told(5, 4, 250'000) == ", parcels of 4 B in 250.0 us");
  CHECK(told(1, 4095, 900) == ", parcels of 4.0 KiB in 900 ns");
}

TEST_CASE("of parcels without times only the size is told") {
  CHECK(told(2, 4, 0) == ", parcels of 4 B");
  CHECK(told(0, 4, 0).empty());
}

} // TEST_SUITE("apps.summary_text")
