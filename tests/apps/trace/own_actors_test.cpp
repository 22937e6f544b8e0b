// SPDX-License-Identifier: Apache-2.0

// The example of an application with actors of its own, and what the command
// makes of its trace.

#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>

using namespace troupe::test;

TEST_SUITE("apps.own_actors") {

using json = nlohmann::json;

TEST_CASE("an application's own actors are in the trace of its training") {
  const temporary_folder folder;
  const auto trained =
    run_in(folder, std::string{TROUPE_OWN_ACTORS_EXAMPLE} + " run.trt");
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto printed = lines_of(trained.out);
  REQUIRE(printed.size() == 5);
  CHECK(printed[4].starts_with("step 49 loss 0.0"));
  CHECK(printed[4].ends_with(", 800 samples"));

  const auto text = run_in(folder, "troupe trace summary run.trt");
  CHECK(text.out.find("actors of the application") != std::string::npos);
  CHECK(text.out.find("reporter#") != std::string::npos);

  const auto answer = run_in(folder, "troupe trace summary run.trt --json");
  REQUIRE(answer.code == 0);
  const auto summary = json::parse(answer.out);
  CHECK(summary["steps"] == 50);
  std::map<std::string, json> actors;
  for (const auto& a : summary["actors"])
    actors[a["name"]] = a;
  // Main asks the feeder, and the feeder and main tell the reporter; each gets
  // an exit message.
  REQUIRE(actors.contains("feeder"));
  REQUIRE(actors.contains("reporter"));
  CHECK(actors["feeder"]["received"] == 51);
  CHECK(actors["feeder"]["handled"] == 51);
  CHECK(actors["reporter"]["received"] == 101);
  CHECK(actors["reporter"]["handled"] == 101);
  CHECK(actors["reporter"]["longest_mailbox"] >= 1);
  CHECK(actors["reporter"]["failed"] == false);
  CHECK(actors["reporter"]["reason"] == "user_shutdown");

  const auto exported =
    run_in(folder, "troupe trace export --format chrome run.trt --out a.json");
  REQUIRE(exported.code == 0);
  const auto events =
    json::parse(read_bytes(folder / "a.json")).at("traceEvents");
  std::size_t fed = 0;
  for (const auto& e : events)
    fed += e.value("cat", "") == "handling" && e["name"] == "('fed', i32)"
           && e["args"].value("sender", "").starts_with("feeder#");
  CHECK(fed == 50);
}

} // TEST_SUITE("apps.own_actors")
