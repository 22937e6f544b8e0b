// SPDX-License-Identifier: Apache-2.0
//
// Dumps of a running `troupe train`.
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

using namespace troupe::test;

TEST_SUITE("apps.flight_recorder") {

namespace {

using json = nlohmann::json;

const std::string train_for_long =
  "train mlp --synthetic --batch 8 --steps 100000000 --devices cpu:1 "
  "--threads 1 ";

/// The .trt files in a folder.
std::vector<std::string> traces_in(const temporary_folder& folder) {
  std::vector<std::string> found;
  for (auto& file : std::filesystem::directory_iterator{folder.path()})
    if (file.path().extension() == ".trt")
      found.push_back(file.path().filename().string());
  std::ranges::sort(found);
  return found;
}

json summary_of(const std::string& file) {
  const auto result = run_troupe({"trace", "summary", file, "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  return json::parse(lines_of(result.out).at(0));
}

/// Lines of shell that start the command in the background, with its process
/// in $P, and wait until its stderr, in the file `err`, has the text.
std::string started(const std::string& arguments, const std::string& until) {
  // After "true;" the shell changes its folder, and does not only the command.
  return "true; " TROUPE_COMMAND " " + arguments
         + " 2> err & P=$!; while kill -0 $P && ! grep -q -e '" + until
         + "' err; do sleep 0.02; done; ";
}
std::string wait_for(const std::string& text) {
  return "while kill -0 $P && ! grep -q -e '" + text
         + "' err; do sleep 0.02; done; ";
}
const std::string and_end = "kill -TERM $P; wait $P; cat err >&2";

} // namespace

TEST_CASE("SIGUSR1 writes what a training has recorded, again and again") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, started(train_for_long, "epoch 2") + "kill -USR1 $P; "
                     + wait_for("-1.trt") + "kill -USR1 $P; "
                     + wait_for("-2.trt") + and_end);
  INFO(result.err);
  const auto files = traces_in(folder);
  REQUIRE(files.size() == 2);
  CHECK(contains(result.err, "flight recorder: the latest steps are in "
                               + files.at(0) + "; troupe trace summary"));
  CHECK(contains(result.err, "stopped after step")); // it had gone on
  std::size_t before = 0;
  for (const auto& file : files) {
    const auto s = summary_of(folder / file);
    CHECK(s["level"] == "steps");
    CHECK(s["steps"] > 0);
    CHECK(s["steps"] >= before); // a busy machine may do none between
    CHECK(s["processes"][0]["complete"] == true);
    CHECK(s["command"] == "train mlp");
    CHECK_FALSE(s["processes"][0]["phases"].empty());
    before = s["steps"];
  }
}

TEST_CASE("steps that take too long leave one dump, however many are told") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, "troupe train mlp --synthetic --batch 8 --steps 5 --devices "
                   "cpu:1 --threads 1 --slow relu=400ms --watchdog 0.1");
  INFO(result.err);
  REQUIRE(result.code == 0);
  // On a busy machine some steps are not told.
  CHECK(std::ranges::count_if(
          lines_of(result.err),
          [](const auto& line) { return contains(line, "has not ended"); })
        > 1);
  CHECK(traces_in(folder).size() == 1);
  CHECK(summary_of(folder / traces_in(folder).at(0))["level"] == "steps");
}

TEST_CASE("a slow op is compared with its median, also in a run of one rank") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, started(train_for_long + "--slow relu=20ms --watchdog 0.01",
                           "slow op: relu#.*; its median is")
                     + and_end);
  INFO(result.err);
  CHECK(contains(result.err, "its median is"));
}

TEST_CASE("a dump names the function in which a worker is stuck") {
  const temporary_folder folder;
  // On a busy machine the watchdog's own dump can be of an op before.
  const auto result = run_in(
    folder, started(train_for_long + "--slow relu=1000s --watchdog 0.1",
                    "slow op: relu#")
              + wait_for("-1.trt") + "kill -USR1 $P; " + wait_for("-2.trt")
              + "kill -KILL $P; wait $P; cat err >&2");
  INFO(result.err);
  REQUIRE(traces_in(folder).size() == 2);
  const std::string file = folder / traces_in(folder).at(1);
  const auto all = summary_of(file)["processes"][0]["stacks"];
  INFO(all.dump(1));
  REQUIRE(all.size() == 1);
  const auto stack = all[0];
  CHECK(stack["op"].get<std::string>().starts_with("relu#"));
  CHECK(stack["step"] == 0);
  CHECK(stack["help"] == false);
  CHECK(stack["missing"] == "");
  CHECK(stack["thread"] > 0);
  CHECK(stack["ran_ns"] > 0);
  CHECK(std::ranges::any_of(stack["frames"], [](const json& frame) {
    return contains(frame["text"].get<std::string>(), "slow_kernel::run")
           && frame["module"] == "troupe" && frame["symbol_offset"] > 0;
  }));
  const auto text = run_troupe({"trace", "summary", file});
  INFO(text.out);
  CHECK(contains(text.out, "ran relu#"));
  CHECK(contains(text.out, "slow_kernel::run"));
  CHECK(run_troupe({"trace", "report", file, "--out", folder / "r.html"}).code
        == 0);
  CHECK(contains(read_bytes(folder / "r.html"), "slow_kernel::run"));
}

TEST_CASE("a damaged block of stacks takes nothing else with it") {
  const temporary_folder folder;
  const auto run =
    run_in(folder, started(train_for_long + "--slow relu=1000s --watchdog 0.1",
                           "-1.trt")
                     + "kill -KILL $P; wait $P; cat err >&2");
  INFO(run.err);
  const std::string file = folder / traces_in(folder).at(0);
  auto bytes = read_bytes(file);
  const auto at = bytes.find("slow_kernel");
  REQUIRE(at != std::string::npos);
  bytes[at] = 'S';
  write_bytes(file, bytes);
  const auto result = run_troupe({"trace", "summary", file});
  CHECK(result.code == 0);
  CHECK(lines_of(result.err).size() == 1);
  CHECK(contains(result.err, "cut or damaged, the last"));
  CHECK_FALSE(contains(result.out, "call stacks"));
  CHECK(contains(result.out, "start-up"));
}

TEST_CASE("a step that fails leaves a dump, unless the recorder is off") {
  const temporary_folder folder;
  const std::string fails =
    "troupe train mlp --synthetic --batch 8 --steps 9 --devices cpu:1 "
    "--threads 1 --memory-limit 8MiB ";
  for (const std::string level : {"ops", "off"}) {
    const auto result = run_in(folder, fails + "--flight-recorder " + level);
    INFO(result.err);
    CHECK(result.code == 1);
    CHECK(contains(lines_of(result.err).back(), "troupe: "));
    REQUIRE(traces_in(folder).size() == 1);
  }
  const auto s = summary_of(folder / traces_in(folder).at(0));
  CHECK(s["level"] == "ops");
}

TEST_CASE("a dump that cannot be written is a warning, and the run goes on") {
  const temporary_folder folder;
  const auto result = run_in(
    folder, "mkdir gone && cd gone && rmdir ../gone && troupe train mlp "
            "--synthetic --batch 8 --steps 3 --devices cpu:1 --threads 1 "
            "--slow relu=600ms --watchdog 0.2");
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "warning: no dump of the flight recorder: cannot "
                             "write troupe-"));
  CHECK(contains(result.err, "trained 3 steps"));
}

TEST_CASE("SIGUSR1 asks all ranks of a launch") {
  const temporary_folder folder;
  const auto result = run_in(
    folder, started("launch --nodes 2 -- " TROUPE_COMMAND " " + train_for_long,
                    "epoch 2")
              + "kill -USR1 $P; " + wait_for("-1.trt") + wait_for("-1.1.trt")
              + and_end);
  INFO(result.err);
  CHECK(traces_in(folder).size() == 2);
  CHECK(contains(result.err, "stopped after step")); // it had gone on
}

TEST_CASE("SIGUSR1 says that nothing is recorded if nothing is") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, started(train_for_long + "--flight-recorder off", "epoch 2")
                     + "kill -USR1 $P; " + wait_for("it is off") + and_end);
  INFO(result.err);
  CHECK(contains(result.err, "warning: no dump of the flight recorder"));
  CHECK(contains(result.err, "stopped after step"));
  CHECK(traces_in(folder).empty());
}

} // TEST_SUITE("apps.flight_recorder")
