// SPDX-License-Identifier: Apache-2.0
//
// Elastic jobs with the strategy reduce: each rank has a part of the optimizer
// state, and a part that ends with its rank is read from a snapshot.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>
#include <troupe/base/random.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.elastic.divided_state") {

namespace {

constexpr int all_steps = 300;

words digits(int steps, const words& more) {
  return words{"train",      "digits", "--data",  TROUPE_DATA "/digits",
               "--seed",     "3",      "--steps", std::to_string(steps),
               "--strategy", "reduce"}
         + more;
}

struct job {
  temporary_folder folder;

  /// The command of an elastic job whose ranks divide their state.
  words elastic(const std::string& range, const std::string& ranks,
                const words& more, const std::string& every = "20") const {
    return words{"launch",        "--elastic", range,         "--nodes",
                 ranks,           "--grace",   "0.2",         "--logs",
                 folder / "logs", "--",        TROUPE_COMMAND}
           + digits(all_steps,
                    words{"--slow", "mean=2ms", "--snapshots", folder / "s",
                          "--snapshot-every", every, "--save", folder / "saved",
                          "--metrics", folder / "m.jsonl"}
                      + more);
  }
  /// Trains without an end of a rank, up to a step. Goes on from what it has
  /// trained before.
  int train_whole(int steps, const std::string& ranks, const words& more = {}) {
    return run_troupe(
             words{"launch", "--nodes", ranks, "--logs", folder / "logs", "--",
                   TROUPE_COMMAND}
             + digits(steps, words{"--save", folder / "whole", "--metrics",
                                   folder / "whole.jsonl", "--snapshots",
                                   folder / "w", "--snapshot-every",
                                   std::to_string(steps), "--resume", "auto"}
                               + more))
      .code;
  }
  void check_same() const {
    CHECK(read_bytes(folder / "whole/params.pdiparams")
          == read_bytes(folder / "saved/params.pdiparams"));
    CHECK(metrics_before("ms", folder / "whole.jsonl")
          == metrics_before("ms", folder / "m.jsonl"));
    CHECK(lines_of(read_bytes(folder / "m.jsonl")).size() == all_steps);
  }
};

/// Kills ranks in these places, one when the others have gone on after the one
/// before.
while_launched kill_in(const std::vector<int>& places, std::size_t& kills,
                       const std::string& first = "epoch 1/") {
  return [&kills, places, first, left = 20](pid_t launch,
                                            const std::string& err) mutable {
    if (!contains(err, first) || count_of(err, "goes on after step") < kills
        || left-- > 0)
      return false;
    const auto victim = rank_in_place(launch, places[kills]);
    if (victim == 0)
      return false;
    ::kill(victim, SIGKILL);
    left = 20;
    return ++kills == places.size();
  };
}

int step_at_which(const std::string& err, const std::string& ranks) {
  const auto end =
    err.find(" in " + ranks + (ranks == "1" ? " rank\n" : " ranks\n"));
  const auto begin = err.rfind("goes on after step ", end);
  int step = -1;
  if (end != err.npos && begin != err.npos)
    std::sscanf(err.c_str() + begin, "goes on after step %d", &step);
  return step;
}

} // namespace

TEST_CASE("ranks go back to a snapshot, and end as if none had been killed") {
  job j;
  REQUIRE(j.train_whole(all_steps, "3") == 0);
  std::size_t kills = 0;
  const auto result =
    run_troupe(j.elastic("1:3", "3", {}), kill_in({1, 0, 2}, kills));
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(kills == 3);
  CHECK(contains(result.err, "optimizer state has ended with its rank: goes "
                             "back to "
                               + (j.folder / "s/step-").string()));
  j.check_same();
}

TEST_CASE("without a snapshot yet, ranks begin again") {
  job j;
  REQUIRE(j.train_whole(all_steps, "2") == 0);
  std::size_t kills = 0;
  const auto result =
    run_troupe(j.elastic("1:2", "2", {}, "100000"), kill_in({1}, kills));
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(kills == 1);
  CHECK(contains(result.err, "goes on after step 0 in 2 ranks"));
  j.check_same();
}

TEST_CASE("a job that grows goes on from memory, with all parts of its state") {
  job j;
  command_result answer;
  bool has_joined = false;
  const auto result = run_troupe(
    j.elastic("1:3", "2", {}, "100000"),
    [&](pid_t launch, const std::string& err) {
      if (!has_joined && contains(err, "epoch 1/")) {
        has_joined = true;
        answer = run_troupe({"launch", "--join", std::to_string(launch)});
      }
      return has_joined;
    });
  INFO(result.err);
  CHECK(answer.code == 0);
  CHECK(result.code == 0);
  CHECK_FALSE(contains(result.err, "goes back"));
  const auto step = step_at_which(result.err, "3");
  REQUIRE(step > 0);
  REQUIRE(j.train_whole(step, "2") == 0);
  REQUIRE(j.train_whole(all_steps, "3") == 0);
  j.check_same();
}

TEST_CASE("fewer ranks go on with the bits of a run that is resumed in them") {
  job j;
  pid_t victim = 0;
  const auto result = run_troupe(
    words{"launch", "--elastic", "1:2", "--grace", "0.2", "--logs",
          j.folder / "logs", "--", "/bin/sh", "-c",
          // The place is given up after twenty starts.
          "if [ $TROUPE_RANK = 1 ] && [ -e " + (j.folder / "gone").string()
            + " ]; then kill -9 $$; fi; exec \"$@\"",
          "sh", TROUPE_COMMAND}
      + digits(all_steps,
               {"--slow", "mean=2ms", "--snapshots", j.folder / "s",
                "--snapshot-every", "20", "--save", j.folder / "saved",
                "--metrics", j.folder / "m.jsonl"}),
    [&](pid_t launch, const std::string& err) {
      if (!contains(err, "epoch 1/"))
        return false;
      victim = rank_in_place(launch, 1);
      write_bytes(j.folder / "gone", "");
      return victim != 0 && ::kill(victim, SIGKILL) == 0;
    });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "the others go on"));
  const auto step = step_at_which(result.err, "1");
  REQUIRE(step > 0);
  CHECK(step % 20 == 0);
  REQUIRE(j.train_whole(step, "2") == 0);
  REQUIRE(j.train_whole(all_steps, "1", {"--devices", "cpu:1"}) == 0);
  j.check_same();
}

TEST_CASE("what would be lost with its rank is refused") {
  const temporary_folder folder;
  const auto run = [&](const words& more) {
    return run_troupe(words{"launch", "--elastic", "1:2", "--grace", "0.2",
                            "--logs", folder / "logs", "--", TROUPE_COMMAND,
                            "train", "digits", "--data", TROUPE_DATA "/digits"}
                      + more);
  };
  const auto without = run({"--strategy", "reduce"});
  CHECK(without.code == 2);
  CHECK(contains(last_error(without),
                 "--strategy reduce in an elastic job needs --snapshots and "
                 "--snapshot-every: "));
  const auto replicate = run({"--strategy", "replicate"});
  CHECK(replicate.code == 2);
  CHECK(contains(last_error(replicate),
                 "--strategy replicate cannot be used in an elastic job"));
}

} // TEST_SUITE("apps.elastic.divided_state")
