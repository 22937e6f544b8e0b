// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <troupe/dashboard/server/web_server.hpp>

#include <doctest/doctest.h>

using namespace troupe;

TEST_SUITE("dashboard.server_missing") {

TEST_CASE("a build without Boost says which package is missing") {
  const auto thrown = test::caught([] {
    dashboard::web_server{{}, dashboard::web_access{}, {}};
  });
  CHECK(thrown.code() == errc::not_found);
  CHECK(test::says(thrown, "libboost-dev"));
}
} // TEST_SUITE("dashboard.server_missing")
