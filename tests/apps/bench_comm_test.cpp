// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace troupe::test;

TEST_SUITE("apps.bench_comm") {

TEST_CASE(
  "bench comm measures engines side by side, and says what is missing") {
  const auto result =
    run_troupe({"bench", "comm", "--bytes", "1KiB,64KiB", "--rounds", "2",
                "--engines", "mpi,shm", "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 3);
  CHECK(nlohmann::json::parse(lines[0])["engine"] == "mpi");
  CHECK(nlohmann::json::parse(lines[0]).contains("missing"));
  const auto large = nlohmann::json::parse(lines[2]);
  CHECK(large["engine"] == "shm");
  CHECK(large["processes"] == 2);
  CHECK(large["bytes"] == 65536);
  CHECK(large["us"] > 0);
  CHECK(large["gb_per_s"] > 0);
}

} // TEST_SUITE("apps.bench_comm")
