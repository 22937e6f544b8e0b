// SPDX-License-Identifier: Apache-2.0
//
// Ranks that join a job while it trains.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>
#include <troupe/base/random.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.elastic.growth") {

namespace {

constexpr int all_steps = 400;

/// Slow enough for a rank to join, and with results that do not depend on that.
words digits(const words& more) {
  return words{"train",   "digits",
               "--data",  TROUPE_DATA "/digits",
               "--seed",  "3",
               "--slow",  "mean=4ms",
               "--steps", std::to_string(all_steps)}
         + more;
}

/// Two ranks, to which two can be added.
words growing(const temporary_folder& folder, const words& command) {
  return words{"launch",        "--nodes", "2",           "--elastic",
               "1:4",           "--grace", "0.2",         "--logs",
               folder / "logs", "--",      TROUPE_COMMAND}
         + command;
}

command_result join(pid_t launch, int ranks = 1) {
  return run_troupe({"launch", "--join", std::to_string(launch), "--nodes",
                     std::to_string(ranks)});
}

/// Calls `act` once, when the job trains.
while_launched once_it_trains(const std::function<void(pid_t)>& act) {
  return [act](pid_t launch, const std::string& err) {
    if (!contains(err, "epoch 1/"))
      return false;
    act(launch);
    return true;
  };
}

/// Of "goes on after step 120 in 3 ranks": the step.
std::optional<int> step_at_which(const std::string& err, int ranks) {
  const std::string before = "goes on after step ";
  for (auto at = err.find(before); at != err.npos;
       at = err.find(before, at + 1)) {
    int step = 0, now = 0;
    if (std::sscanf(err.c_str() + at + before.size(), "%d in %d ranks", &step,
                    &now)
          == 2
        && now == ranks)
      return step;
  }
  return std::nullopt;
}

/// The number that stands before `words` for the last time.
unsigned long number_before(const std::string& text, const std::string& words) {
  const auto end = text.rfind(words);
  const auto begin = text.find_last_of(" \n", end - 1) + 1;
  return std::stoul(text.substr(begin, end - begin));
}

/// The numbers of the steps in a file of metrics must be 0, 1, 2, ...
void check_steps(const std::filesystem::path& metrics) {
  const auto lines = lines_of(read_bytes(metrics));
  CHECK(lines.size() == all_steps);
  for (std::size_t i = 0; i < lines.size(); ++i)
    CHECK(lines[i].starts_with("{\"step\":" + std::to_string(i) + ","));
}

} // namespace

TEST_CASE("a job that grows uses each sample once, with the bits of one that "
          "was resumed in more ranks") {
  const temporary_folder folder;
  command_result answer;
  const auto grown = run_troupe(
    growing(folder, digits({"--save", folder / "grown", "--metrics",
                            folder / "grown.jsonl", "--trace", folder / "g.trt",
                            "--trace-level", "steps"})),
    once_it_trains([&](pid_t launch) { answer = join(launch); }));
  INFO(grown.err);
  CHECK(answer.code == 0);
  CHECK(answer.err == "troupe: 1 rank is started\n");
  CHECK(grown.code == 0);
  CHECK(contains(grown.err, "troupe: more ranks can join: troupe launch "
                            "--join "));
  const auto step = step_at_which(grown.err, 3);
  REQUIRE(step);
  CHECK(*step < all_steps);
  CHECK(contains(grown.err, "the trace in " + (folder / "g.trt").string()
                              + " ends, because the ranks change; after step "
                              + std::to_string(*step) + " it goes on in "
                              + (folder / "g.epoch-2.trt").string()));
  check_steps(folder / "grown.jsonl");
  // Of both epochs; a step that was cancelled can have some, too.
  CHECK(number_before(grown.err, " messages\n")
        >= all_steps * number_before(grown.err, " messages per step\n"));

  const words on{
    "--strategy",  "all_reduce", "--metrics",        folder / "whole.jsonl",
    "--snapshots", folder / "s", "--snapshot-every", std::to_string(*step),
    "--resume",    "auto"};
  const auto train = [&](const std::string& steps, const std::string& devices) {
    return run_troupe(words{"train", "digits", "--data", TROUPE_DATA "/digits",
                            "--seed", "3", "--steps", steps, "--devices",
                            devices, "--save", folder / "whole"}
                      + on)
      .code;
  };
  REQUIRE(train(std::to_string(*step), "cpu:2") == 0);
  REQUIRE(train(std::to_string(all_steps), "cpu:3") == 0);
  CHECK(read_bytes(folder / "whole/params.pdiparams")
        == read_bytes(folder / "grown/params.pdiparams"));
  CHECK(metrics_before("losses", folder / "whole.jsonl")
        == metrics_before("losses", folder / "grown.jsonl"));
}

TEST_CASE("a job that has as many ranks as it may have takes no more") {
  const temporary_folder folder;
  const auto file = (folder / "t.trt").string();
  command_result trace, three, two, one;
  const auto result =
    run_troupe(growing(folder, digits({})), once_it_trains([&](pid_t launch) {
                 trace = run_troupe({"trace", "start", std::to_string(launch),
                                     "--level", "steps", "--out", file});
                 three = join(launch, 3);
                 two = join(launch, 2);
                 one = join(launch);
               }));
  CHECK(result.code == 0);
  CHECK(trace.code == 0);
  CHECK(contains(result.err,
                 "the trace in " + file + " ends, because the ranks change"));
  CHECK(two.code == 0);
  CHECK(fails_with(three, 1,
                   {"troupe: the job has 2 ranks and may have 4 (--elastic): "
                    "3 more cannot join"}));
  CHECK(lines_of(three.err).size() == 1);
  CHECK(fails_with(one, 1,
                   {"troupe: the job has 4 ranks and may have 4 (--elastic): "
                    "1 more cannot join"}));
  CHECK(step_at_which(result.err, 4));
}

TEST_CASE("a rank that is killed while it joins is started again") {
  const temporary_folder folder;
  splitmix64 draw{4};
  auto left = draw.below(20); // calls, every 5 ms
  bool has_joined = false;
  pid_t victim = 0;
  const auto result = run_troupe(
    growing(folder, digits({"--metrics", folder / "m.jsonl"})),
    [&](pid_t launch, const std::string& err) {
      if (!has_joined) {
        has_joined = contains(err, "epoch 1/") && join(launch).code == 0;
        return false;
      }
      if (victim == 0)
        victim = rank_in_place(launch, 2);
      return victim != 0 && left-- == 0 && ::kill(victim, SIGKILL) == 0;
    });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(
    contains(result.err, "rank 2 was killed by SIGKILL and is started again"));
  CHECK(step_at_which(result.err, 3));
  check_steps(folder / "m.jsonl");
}

TEST_CASE("rank 0 can be killed while another joins") {
  const temporary_folder folder;
  bool has_joined = false;
  const auto result =
    run_troupe(growing(folder, digits({"--save", folder / "saved", "--metrics",
                                       folder / "m.jsonl"})),
               [&](pid_t launch, const std::string& err) {
                 if (!has_joined) {
                   has_joined =
                     contains(err, "epoch 1/") && join(launch).code == 0;
                   return false;
                 }
                 const auto first = rank_in_place(launch, 0);
                 return rank_in_place(launch, 2) != 0 && first != 0
                        && ::kill(first, SIGKILL) == 0;
               });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(
    contains(result.err, "rank 0 was killed by SIGKILL and is started again"));
  CHECK(step_at_which(result.err, 3));
  check_steps(folder / "m.jsonl");
  CHECK(std::filesystem::exists(folder / "saved"));
}

TEST_CASE("the others go on without a rank that cannot join") {
  const temporary_folder folder;
  const auto run = [&](const std::string& script, const std::string& logs) {
    return launch(
      2, script,
      {"--elastic", "1:3", "--grace", "0.1", "--logs", folder / logs},
      [](pid_t launch, const std::string& err) {
        return contains(err, "ready") && join(launch).code == 0;
      });
  };
  const std::string others = "echo ready >&2; until [ -e "
                             + (folder / "go").string()
                             + " ]; do sleep 0.01; done";
  const auto fails = run(in_rank(2,
                                 "touch " + (folder / "go").string()
                                   + "; echo why >&2; sleep 0.1; exit 3",
                                 others + "; sleep 0.4"),
                         "fails");
  CHECK(fails.code == 0);
  CHECK(contains(fails.err,
                 "rank 2 failed with exit code 3, the others go on: why"));
  std::filesystem::remove(folder / "go");
  const auto killed =
    run(in_rank(2,
                "echo >> " + (folder / "starts").string() + "; [ $(wc -l < "
                  + (folder / "starts").string() + ") = 20 ] && touch "
                  + (folder / "go").string() + "; kill -9 $$",
                others + "; sleep 0.4"),
        "killed");
  CHECK(killed.code == 0);
  CHECK(contains(killed.err, "rank 2 was killed by SIGKILL, the others go on"));
}

TEST_CASE("a job ends without a rank that has not come in yet") {
  const temporary_folder folder;
  const auto note = (folder / "joiner").string();
  const auto result = launch(
    2,
    in_rank(2,
            "echo $$ > " + note + ".new; mv " + note + ".new " + note
              + "; sleep 10; touch " + (folder / "late").string(),
            "echo ready >&2; until [ -e " + note + " ]; do sleep 0.01; done"),
    {"--elastic", "1:3", "--logs", folder / "logs"},
    [](pid_t launch, const std::string& err) {
      return contains(err, "ready") && join(launch).code == 0;
    });
  CHECK(result.code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "late"));
  CHECK(
    comes_true([&] { return has_ended(lines_of(read_bytes(note)).at(0)); }));
}

TEST_CASE("a rank that has joined does not outlive its launch") {
  const temporary_folder folder;
  pid_t joined = 0;
  std::vector<pid_t> ranks;
  const auto result = run_troupe(
    growing(folder, digits({})), [&](pid_t launch, const std::string& err) {
      if (ranks.empty() && contains(err, "epoch 1/") && joined == 0)
        joined = join(launch).code == 0 ? launch : 0;
      if (joined == 0 || ranks_of(launch).size() < 3)
        return false;
      ranks = ranks_of(launch);
      return ::kill(launch, SIGKILL) == 0;
    });
  CHECK(result.code == 128 + SIGKILL);
  REQUIRE(ranks.size() == 3);
  for (const auto rank : ranks)
    CHECK(comes_true([&] { return has_ended(std::to_string(rank)); }));
}

TEST_CASE("only a launch that runs an elastic job can be joined") {
  CHECK(fails_with(join(1), 1,
                   {"process 1 runs no job of troupe launch --elastic"}));
  CHECK(fails_with(run_troupe({"launch", "--join", "1", "--elastic", "1:2"}), 2,
                   {"--join excludes --elastic"}));
  CHECK(fails_with(run_troupe({"launch", "--join", "1", "--", "true"}), 2,
                   {"--join takes no COMMAND"}));
  CHECK(fails_with(run_troupe({"launch", "--join", "x"}), 2, {"--join"}));
  const temporary_folder folder;
  command_result answer;
  launch(1, "echo ready >&2; sleep 0.3", {},
         [&](pid_t launch, const std::string& err) {
           if (!contains(err, "ready"))
             return false;
           answer = join(launch);
           return true;
         });
  CHECK(fails_with(answer, 1, {"runs no job of troupe launch --elastic"}));
}

TEST_CASE("a request that nobody answers is withdrawn") {
  const temporary_folder folder;
  command_result answer;
  launch(1,
         "echo ready >&2; until [ -e " + (folder / "go").string()
           + " ]; do sleep 0.01; done",
         {"--elastic", "1:2", "--logs", folder / "logs"},
         [&](pid_t launch, const std::string& err) {
           if (!contains(err, "ready"))
             return false;
           ::kill(launch, SIGSTOP);
           answer = join(launch);
           ::kill(launch, SIGCONT);
           write_bytes(folder / "go", "");
           return true;
         });
  CHECK(fails_with(answer, 1, {"does not answer"}));
  CHECK_FALSE(std::filesystem::exists(folder / "logs/rank-1.log"));
}

} // TEST_SUITE("apps.elastic.growth")
