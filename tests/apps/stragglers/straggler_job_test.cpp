// SPDX-License-Identifier: Apache-2.0

// Whole jobs, one rank of which has a slow op.

#include "apps/launch/launch_runner.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.stragglers.straggler_job") {

namespace {

const std::string train = std::string{TROUPE_COMMAND}
                          + " train digits --data " TROUPE_DATA
                            "/digits --batch 32 --threads 1";

} // namespace

TEST_CASE("a rank with slow ops is named within 50 steps") {
  const auto result =
    launch(2, in_rank(1, "exec " + train + " --steps 50 --slow relu=20ms",
                      "exec " + train + " --steps 50"));
  CAPTURE(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "rank 1 is slow: ops of type relu take "));
  CHECK(contains(result.err, " times as long as on rank 0 ("));
}

TEST_CASE("a rank with one slow op is named with the op's handle") {
  const auto result = launch(
    2, in_rank(1, "exec " + train + " --steps 100 --slow conv2d_0.tmp_0=x1000",
               "exec " + train + " --steps 100"));
  CAPTURE(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "rank 1 is slow: conv2d#"));
  CHECK(contains(result.err, "@cpu:1 takes "));
}

} // TEST_SUITE("apps.stragglers.straggler_job")
