// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/digest_windows.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace troupe::apps;

TEST_SUITE("apps.stragglers.digest_windows") {

namespace {

op_digest digest_of(std::uint64_t window, float preempted = 0) {
  return {.rows = {}, .preempted = preempted, .window = window};
}

int told_of(std::uint64_t ns) {
  int count = 0;
  for (std::uint64_t window = 0; window < 64; ++window)
    count += is_told(window, ns) ? 1 : 0;
  return count;
}

} // namespace

TEST_CASE("long windows are all told, of short ones a part") {
  CHECK(told_of(5'000'000'000) == 64);
  CHECK(told_of(100'000'000) == 64);
  CHECK(told_of(50'000'000) == 32);
  CHECK(told_of(30'000'000) == 16);
  CHECK(told_of(10'000'000) == 4);
  CHECK(told_of(0) == 1);
}

TEST_CASE("ranks whose windows take different times tell of common ones") {
  for (std::uint64_t window = 0; window < 64; ++window)
    if (is_told(window, 20'000'000))
      CHECK(is_told(window, 60'000'000));
}

TEST_CASE("a window is whole when all ranks have told of it") {
  digest_windows all{2};
  CHECK(!all.add(0, digest_of(0, 0.5f)));
  CHECK(!all.add(0, digest_of(2)));
  const auto whole = all.add(1, digest_of(0, 0.25f));
  REQUIRE(whole);
  REQUIRE(whole->size() == 2);
  CHECK((*whole)[0].preempted == 0.5f);
  CHECK((*whole)[1].preempted == 0.25f);
  CHECK(all.add(1, digest_of(2)));
  CHECK(!all.add(2, digest_of(3))); // there is no such rank
}

TEST_CASE("a window of which one rank has not told is forgotten") {
  digest_windows all{2};
  CHECK(!all.add(0, digest_of(1)));
  CHECK(!all.add(0, digest_of(2)));
  CHECK(all.add(1, digest_of(2)));
  CHECK(!all.add(1, digest_of(1)));
}

TEST_CASE("windows that nobody completes do not pile up") {
  digest_windows all{2};
  for (std::uint64_t window = 0; window < 100; ++window)
    CHECK(!all.add(0, digest_of(window)));
  CHECK(!all.add(1, digest_of(0)));
  CHECK(all.add(1, digest_of(99)));
}

} // TEST_SUITE("apps.stragglers.digest_windows")
