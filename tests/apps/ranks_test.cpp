// SPDX-License-Identifier: Apache-2.0
//
// `troupe train` as several ranks.
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>
#include <troupe/base/random.hpp>
#include <troupe/comm/engine/join.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.ranks") {

namespace {

namespace fs = std::filesystem;
const std::string digits = TROUPE_DATA "/digits";

/// Trains the same in several ranks, or in one process with as many devices.
words train(int ranks, const words& more) {
  const auto count = std::to_string(ranks);
  const words command{"train",  "digits", "--data",  digits,
                      "--seed", "3",      "--batch", "31"};
  if (ranks == 0)
    return command + more;
  static const temporary_folder logs; // kept by default if a rank fails
  const words launch{"launch",
                     "--nodes",
                     count,
                     "--grace",
                     "0.2",
                     "--logs",
                     logs.path().string(),
                     "--",
                     TROUPE_COMMAND};
  return launch + command + more;
}

/// True if two folders of a program have the same parameters.
bool same_parameters(const fs::path& a, const fs::path& b) {
  const auto values = read_bytes(a / "params.pdiparams");
  return !values.empty() && values == read_bytes(b / "params.pdiparams");
}

/// Bytes that this thread's loopback interface has carried.
long long bytes_on_loopback() {
  std::ifstream devices{"/proc/thread-self/net/dev"};
  for (std::string line; std::getline(devices, line);)
    if (const auto name = line.find("lo:"); name != line.npos)
      return std::stoll(line.substr(name + 3));
  return 0;
}

/// Bytes that two ranks send each other over TCP, per step.
long long bytes_per_step(const std::string& accumulate) {
  const auto of_run = [&](int steps) {
    const auto before = bytes_on_loopback();
    const auto result = run_troupe(
      {"launch", "--nodes", "2", "--", TROUPE_COMMAND, "train", "mlp",
       "--synthetic", "--batch", "4", "--comm", "gloo", "--steps",
       std::to_string(steps), "--accumulate", accumulate});
    CHECK(result.code == 0);
    return bytes_on_loopback() - before;
  };
  const auto begin_and_end = of_run(8);
  return (of_run(24) - begin_and_end) / 16;
}

} // namespace

TEST_CASE("options for ranks are refused in a process that is none") {
  for (const words& given : {words{"--comm", "gloo"},
                             {"--data-network", "trusted"},
                             {"--interface", "lo"}}) {
    CAPTURE(given);
    CHECK(fails_with(
      run_troupe(words{"train", "mlp", "--synthetic", "--steps", "1"} + given),
      2, {given[0], "this process is no rank of a job", "troupe launch"}));
  }
  CHECK(run_troupe({"train", "mlp", "--synthetic", "--steps", "1", "--devices",
                    "cpu:1", "--comm", "auto"})
          .code
        == 0);
}

TEST_CASE("an update of several steps sends the bytes of one") {
  if (!comm::gloo_support().is_usable || !own_network::is_possible())
    return skip_case("needs Gloo and the right to make a network");
  const own_network network; // nobody else uses it
  const auto each = bytes_per_step("1");
  const auto every_fourth = bytes_per_step("4");
  CAPTURE(each);
  CAPTURE(every_fourth);
  CHECK(each > 2'000'000); // the net has 535,000 parameters
  CHECK(4 * every_fourth < each + each / 20);
  CHECK(4 * every_fourth > each - each / 20);
}

TEST_CASE("several ranks train as one process with as many devices") {
  const temporary_folder folder;
  for (const std::string strategy : {"all_reduce", "reduce"}) {
    CAPTURE(strategy);
    // Processes share no parameters: with reduce, neither do the devices of
    // one process that is compared, which needs as many.
    const words on{"--epochs", "2", "--strategy", strategy};
    const auto one = run_troupe(train(
      0, {"--epochs", "2", "--strategy", "all_reduce", "--devices", "cpu:3",
          "--save", folder / "one", "--metrics", folder / "one.jsonl"}));
    REQUIRE(one.code == 0);
    const auto three = run_troupe(
      train(3, on
                 + words{"--devices", "cpu:1", "--save", folder / "three",
                         "--metrics", folder / "three.jsonl"}));
    CHECK(three.code == 0);
    CHECK(three.out == one.out); // rank 0 alone tells the accuracy
    CHECK(contains(three.err, "cpu:1 in each of 3 ranks, " + strategy));
    CHECK_FALSE(contains(three.err, "1| "));
    CHECK(same_parameters(folder / "one", folder / "three"));
    CHECK(metrics_before("ms", folder / "one.jsonl")
          == metrics_before("ms", folder / "three.jsonl"));
  }
}

TEST_CASE("handles on other ranks than their own change no bit") {
  const temporary_folder folder;
  write_bytes(folder / "places.txt", "# pattern, rank\n"
                                     "softmax*@cpu:1   0\n"
                                     "*_grad#*@cpu:0   2\n"
                                     "adam*@cpu:2      1\n"
                                     "*tmp*:v1@cpu:1   2\n");
  const words on{"--epochs", "2", "--strategy", "all_reduce"};
  const auto one = run_troupe(
    train(0, on
               + words{"--devices", "cpu:3", "--save", folder / "one",
                       "--metrics", folder / "one.jsonl"}));
  REQUIRE(one.code == 0);
  const auto three = run_troupe(
    train(3, on
               + words{"--devices", "cpu:1", "--place", folder / "places.txt",
                       "--save", folder / "three", "--metrics",
                       folder / "three.jsonl"}));
  CHECK(three.code == 0);
  CHECK(three.out == one.out);
  CHECK(same_parameters(folder / "one", folder / "three"));
  CHECK(metrics_before("ms", folder / "one.jsonl")
        == metrics_before("ms", folder / "three.jsonl"));
}

TEST_CASE("optimizer state of one rank can be in another") {
  const temporary_folder folder;
  write_bytes(folder / "places.txt", "*_moment?_0:*@cpu:2  0\n"
                                     "adam*@cpu:2          0\n"
                                     "*_pow_acc_0:*@cpu:1  2\n");
  const words on{"--epochs", "2", "--devices", "cpu:1", "--strategy", "reduce"};
  REQUIRE(run_troupe(train(3, on + words{"--save", folder / "home"})).code
          == 0);
  const auto placed = run_troupe(train(
    3,
    on + words{"--place", folder / "places.txt", "--save", folder / "placed"}));
  CHECK_MESSAGE(placed.code == 0, placed.err);
  CHECK(same_parameters(folder / "home", folder / "placed"));
}

TEST_CASE("a range of ranks outside of a job is told of") {
  const temporary_folder folder;
  const auto line =
    run_in(folder, "TROUPE_ELASTIC=1:2 troupe train mlp --synthetic --steps 1 "
                   "--devices cpu:1");
  CHECK(line.code == 0);
  CHECK(contains(line.err, "warning: TROUPE_ELASTIC=1:2 has no effect: no "
                           "launcher has started this process"));
  CHECK(contains(
    run_in(folder, "TROUPE_ELASTIC=1:2 troupe launch --nodes 1 -- true").err,
    "warning: TROUPE_ELASTIC=1:2 has no effect in troupe launch: --elastic"));
}

TEST_CASE("places that make no sense are refused in one line") {
  const temporary_folder folder;
  const auto refusal = [&](const char* line, int ranks) {
    write_bytes(folder / "places.txt", line);
    const auto run =
      run_troupe(train(ranks, {"--steps", "1", "--devices", "cpu:1", "--place",
                               folder / "places.txt"}));
    CHECK(run.code != 0);
    return run.err;
  };
  CHECK(contains(refusal("conv9d* 1\n", 2),
                 "places.txt, line 1: 'conv9d*' fits no handle"));
  CHECK(contains(refusal("*@cpu:1 2\n", 2),
                 "--place: " + (folder / "places.txt").string()
                   + ", line 1: there is no rank 2, the last one is 1"));
  CHECK(contains(refusal("softmax\n", 0),
                 "--place: " + (folder / "places.txt").string()
                   + ", line 1: 'softmax' is not a pattern and a rank"));
  for (const auto* nothing : {"", "# comment\n\n"})
    CHECK(refusal(nothing, 0)
          == "troupe: --place: " + (folder / "places.txt").string()
               + " has no line 'PATTERN RANK'\n");
  const auto missing =
    run_troupe(train(0, {"--steps", "1", "--place", folder / "nothing"}));
  CHECK(missing.code == 1);
  CHECK(contains(missing.err, "--place: "));
}

TEST_CASE("each rank has the devices that are given") {
  const temporary_folder folder;
  REQUIRE(
    run_troupe(train(0, {"--steps", "9", "--devices", "cpu:4", "--strategy",
                         "all_reduce", "--save", folder / "one"}))
      .code
    == 0);
  const auto two = run_troupe(
    train(2, {"--steps", "9", "--devices", "cpu:2", "--save", folder / "two"}));
  CHECK(two.code == 0);
  CHECK(same_parameters(folder / "one", folder / "two"));
}

TEST_CASE("ranks that are killed again and again end as if they never were") {
  const temporary_folder folder;
  const words on{"--epochs", "2", "--strategy", "reduce"};
  REQUIRE(run_troupe(train(2, on + words{"--save", folder / "whole"})).code
          == 0);
  const auto resumed = on + words{"--save",           folder / "saved",
                                  "--snapshots",      folder / "s",
                                  "--snapshot-every", "7",
                                  "--resume",         "auto"};
  splitmix64 draw{11};
  for (int round = 0; round < 8; ++round) {
    auto left = draw.below(30); // calls, every 5 ms
    const auto victim = static_cast<int>(draw.below(2));
    run_troupe(train(2, resumed), [&](pid_t launch, const std::string&) {
      const auto process = rank_in_place(launch, victim);
      if (process == 0 || left-- > 0)
        return false;
      ::kill(process, SIGKILL);
      return true;
    });
  }
  CHECK(run_troupe(train(2, resumed)).code == 0);
  CHECK(same_parameters(folder / "whole", folder / "saved"));
}

TEST_CASE("a snapshot loads in another number of ranks") {
  const temporary_folder folder;
  const words on{"--snapshots", folder / "s", "--snapshot-every", "10",
                 "--resume",    "auto",       "--strategy",       "reduce"};
  REQUIRE(run_troupe(train(2, on + words{"--steps", "10"})).code == 0);
  const auto three = run_troupe(train(3, on + words{"--steps", "20"}));
  CHECK(three.code == 0);
  CHECK(contains(three.err, "trained 10 steps"));
  const auto alone =
    run_troupe(train(0, on + words{"--steps", "30", "--devices", "cpu:2"}));
  CHECK(alone.code == 0);
  CHECK(contains(alone.err, "trained 10 steps"));
}

TEST_CASE("if a rank is killed, the others end and name it") {
  const temporary_folder folder;
  for (int victim : {0, 2}) {
    CAPTURE(victim);
    const auto result =
      run_troupe(train(3, {"--steps", "100000000", "--save", folder / "saved"}),
                 [&](pid_t launch, const std::string& err) {
                   if (!contains(err, "epoch 1/"))
                     return false;
                   ::kill(rank_in_place(launch, victim), SIGKILL);
                   return true;
                 });
    CHECK(result.code == 128 + SIGKILL);
    CHECK(contains(result.err, "rank " + std::to_string(victim)
                                 + " was killed by SIGKILL"));
    CHECK(
      contains(result.err, "process " + std::to_string(victim) + " is lost"));
    CHECK(folder.entries() == 0);
  }
}

TEST_CASE("Ctrl-C ends all ranks after a step") {
  const auto result = run_troupe(train(3, {"--steps", "100000000"}),
                                 [](pid_t launch, const std::string& err) {
                                   if (!contains(err, "epoch 1/"))
                                     return false;
                                   ::kill(launch, SIGINT);
                                   return true;
                                 });
  CHECK(result.code == 1);
  CHECK(contains(result.err, "stopped after step"));
}

TEST_CASE("the error of a wrong command is that of one rank") {
  const auto result = run_troupe(train(2, {"--data", "/nonexistent"}));
  CHECK(result.code == 1);
  CHECK(contains(lines_of(result.err).back(), "failed with exit code 1"));
  CHECK(contains(lines_of(result.err).back(), "/nonexistent"));
}

TEST_CASE("a dry run in several ranks sends all messages") {
  for (const std::string strategy : {"all_reduce", "reduce"})
    CHECK(run_troupe({"launch", "--nodes", "2", "--", TROUPE_COMMAND, "train",
                      "mlp", "--synthetic", "--dry-run", "--steps", "5",
                      "--strategy", strategy})
            .code
          == 0);
}

TEST_CASE("variables of samples are not fetched from several ranks") {
  const temporary_folder folder;
  const auto refused =
    run_troupe(train(2, {"--fetch", "image", "--fetch-out", folder / "f.npz"}));
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "only persistable variables"));
  const auto fetched =
    run_troupe(train(2, {"--steps", "2", "--fetch", "learning_rate_0",
                         "--fetch-out", folder / "f.npz"}));
  CHECK(fetched.code == 0);
  CHECK(fs::exists(folder / "f.npz"));
}

TEST_CASE("a rank beyond the size of its job fails with one line") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, "TROUPE_RANK=3 TROUPE_SIZE=2 TROUPE_LOCAL_RANK=1 "
                   "TROUPE_LOCAL_SIZE=2 TROUPE_JOB=j troupe train mlp "
                   "--synthetic");
  CHECK(fails_with(result, 1, {"TROUPE_RANK", "must be less than 2"}));
}

} // TEST_SUITE("apps.ranks")
