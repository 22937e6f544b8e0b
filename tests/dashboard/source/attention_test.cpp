// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/source/attention.hpp>

#include <doctest/doctest.h>

#include <chrono>

using namespace troupe::dashboard;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.attention") {

namespace {

const attention::time_point start{1h};

} // namespace

TEST_CASE("nobody looks before somebody has asked") {
  CHECK_FALSE(attention{}.is_there(start));
}

TEST_CASE("a question is a look for some seconds") {
  attention looks;
  looks.note("/api/v1/state", start);
  CHECK(looks.is_there(start + 4s));
  CHECK_FALSE(looks.is_there(start + 5s));
}

TEST_CASE("a scraper looks from one scrape to the next") {
  attention looks;
  for (int scrape = 0; scrape < 4; ++scrape) {
    looks.note("/metrics", start + scrape * 1min);
    CHECK(looks.is_there(start + scrape * 1min + 59s));
  }
  CHECK_FALSE(looks.is_there(start + 10min));
}

TEST_CASE("a question does not end a scraper's look") {
  attention looks;
  looks.note("/metrics", start);
  looks.note("/api/v1/state", start + 1s);
  CHECK(looks.is_there(start + 1min));
}
} // TEST_SUITE("dashboard.attention")
