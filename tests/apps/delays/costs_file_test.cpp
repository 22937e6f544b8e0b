// SPDX-License-Identifier: Apache-2.0
//
// The file of costs: one command writes it, others read it.
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

using namespace troupe::test;

TEST_SUITE("apps.costs_file") {

TEST_CASE("bench schedule and what-if read what trace costs writes") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", costs = folder / "costs.jsonl";
  const words net{"resnet8", "--devices", "cpu:2", "--strategy", "all_reduce"};
  const auto run = run_troupe(words{"train"} + net
                              + words{"--synthetic", "--batch", "4", "--steps",
                                      "8", "--threads", "2", "--trace", file});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto made = run_troupe({"trace", "costs", file, "--json"});
  REQUIRE(made.code == 0);
  double work_ns = 0; // per step
  for (const auto& line : lines_of(made.out)) {
    const auto row = nlohmann::json::parse(line);
    for (const auto* key : {"attributes", "shapes", "results", "device", "ops",
                            "count", "ns_quarter", "bytes"})
      CHECK(row.contains(key));
    work_ns += row["ns"].get<double>() * row["ops"].get<double>();
  }
  write_bytes(costs, made.out);
  const auto schedule =
    words{"bench", "schedule"} + net
    + words{"--threads", "2",      "--repeat", "1",  "--sample-ms",
            "0",         "--json", "--delay",  costs};
  const auto result = run_troupe(schedule);
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto out = nlohmann::json::parse(result.out);
  CHECK(out["ops_without_cost"] == 0); // the same graph
  CHECK(out["work_ms"].get<double>() * 1e6
        == doctest::Approx(work_ns).epsilon(0.001)); // delays are whole ns
  CHECK(out["ms"] >= out["critical_path_ms"]);
  // An entry of a type comes first.
  const auto changed = run_troupe(schedule + words{"--delay", "conv2d=0us"});
  REQUIRE(changed.code == 0);
  CHECK(nlohmann::json::parse(changed.out)["work_ms"] < out["work_ms"]);
  // Another net has other ops.
  const auto other =
    run_troupe({"bench", "schedule", "mlp", "--repeat", "1", "--sample-ms", "0",
                "--delay", costs, "--delay", "mul=1us"});
  INFO(other.err);
  CHECK(other.code == 0);
  CHECK(contains(other.out, " ops have no cost and take no time: "));
  const auto same =
    run_troupe({"trace", "critical-path", file, "--what-if", costs, "--json"});
  INFO(same.err);
  REQUIRE(same.code == 0);
  CHECK(nlohmann::json::parse(lines_of(same.out).at(0))["predicted_ns"] > 0);
  write_bytes(costs, "conv2d=1us\n");
  CHECK(fails_with(run_troupe(schedule), 1,
                   {"--delay: " + costs
                    + ", line 1: not a line of troupe trace costs --json"}));
  CHECK(
    fails_with(run_troupe({"trace", "critical-path", file, "--what-if", costs}),
               1, {"--what-if", "line 1"}));
}

} // TEST_SUITE("apps.costs_file")
