// SPDX-License-Identifier: Apache-2.0
//
// Jobs whose ranks end and begin while they train.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>
#include <support/long_run.hpp>
#include <troupe/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("apps.elastic") {

namespace {

namespace fs = std::filesystem;
words digits(const words& more, const std::string& epochs = "8") {
  return words{"train",  "digits", "--data",   TROUPE_DATA "/digits",
               "--seed", "3",      "--epochs", epochs}
         + more;
}

words elastic(const std::string& range, const temporary_folder& logs,
              const words& command) {
  return words{"launch", "--elastic",   range, "--grace",     "0.2",
               "--logs", logs / "logs", "--",  TROUPE_COMMAND}
         + command;
}

/// Which rank is killed next, of those that live.
using choice = std::function<pid_t(const std::vector<pid_t>& ranks)>;

/// How often ranks are killed in a job, which trains so long.
struct trial {
  std::size_t kills = 5;
  std::string epochs = "8";
  /// Steps are done after each kill: a job ends after 60 epochs without one.
  bool goes_on_between = false;
};

trial wanted_trial() {
  return is_long_run() ? trial{100, "100", true} : trial{};
}

/// Kills ranks of a job, and compares it with a run in which none is killed.
void check_kills(const words& more, const choice& next,
                 const trial& wanted = {}) {
  const temporary_folder folder;
  REQUIRE(run_troupe(digits(more
                              + words{"--devices", "cpu:3", "--strategy",
                                      "all_reduce", "--save", folder / "whole",
                                      "--metrics", folder / "whole.jsonl"},
                            wanted.epochs))
            .code
          == 0);
  splitmix64 draw{7};
  std::size_t kills = 0;
  auto pause = 40 + draw.below(20); // calls, every 5 ms
  const auto result =
    run_troupe(elastic("1:3", folder,
                       digits(more
                                + words{"--save", folder / "saved", "--metrics",
                                        folder / "m.jsonl"},
                              wanted.epochs)),
               [&](pid_t launch, const std::string& err) {
                 // The others go on first, or nobody might have the parameters
                 // any more.
                 const bool go_on =
                   contains(err, "epoch 1/")
                   && count_of(err, "goes on after step") >= kills;
                 if (pause > 0 || !go_on) {
                   pause -= pause > 0 && (go_on || !wanted.goes_on_between);
                   return false;
                 }
                 const auto ranks = ranks_of(launch);
                 if (ranks.empty())
                   return true; // the job is over
                 ::kill(next(ranks), SIGKILL);
                 pause = draw.below(30);
                 return ++kills == wanted.kills;
               });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(kills > wanted.kills / 2);
  CHECK(contains(result.err, "was killed by SIGKILL and is started again"));
  CHECK(contains(result.err, "goes on after step"));
  CHECK(read_bytes(folder / "whole/params.pdiparams")
        == read_bytes(folder / "saved/params.pdiparams"));
  CHECK(metrics_before("losses", folder / "whole.jsonl")
        == metrics_before("losses", folder / "m.jsonl"));
}

} // namespace

TEST_CASE("ranks are killed, and training ends as if none had been") {
  check_kills(
    {},
    [draw = splitmix64{5}](auto& ranks) mutable {
      return ranks[draw.below(ranks.size())];
    },
    wanted_trial());
}

TEST_CASE("ranks are killed while they accumulate gradients") {
  const words on{"--batch", "12", "--accumulate", "9"};
  // Rank 0 stays the oldest, repeats steps, and writes each line once.
  check_kills(on, [](auto& ranks) { return std::ranges::max(ranks); });
  // It goes, and another rank writes.
  check_kills(on, [](auto& ranks) { return std::ranges::min(ranks); });
}

TEST_CASE("a job without a rank that fails is like any other") {
  const temporary_folder folder;
  const auto result = run_troupe(
    elastic("2:2", folder, {"train", "mlp", "--synthetic", "--steps", "5"}));
  CHECK(result.code == 0);
  CHECK(contains(result.err, "in each of 2 ranks"));
  CHECK_FALSE(contains(result.err, "goes on"));
}

TEST_CASE("ranks of several devices all get the state") {
  const temporary_folder folder;
  REQUIRE(run_troupe(digits({"--devices", "cpu:4", "--strategy", "all_reduce",
                             "--save", folder / "whole"}))
            .code
          == 0);
  std::size_t kills = 0;
  const auto result =
    run_troupe(elastic("1:2", folder,
                       digits({"--devices", "cpu:2", "--verify-every", "20",
                               "--save", folder / "saved"})),
               [&](pid_t launch, const std::string& err) {
                 if (!contains(err, "epoch 1/")
                     || count_of(err, "goes on after step") < kills)
                   return false;
                 const auto ranks = ranks_of(launch);
                 if (ranks.empty())
                   return true;
                 ::kill(ranks[kills % ranks.size()], SIGKILL);
                 return ++kills == 2;
               });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "is started again"));
  CHECK(read_bytes(folder / "whole/params.pdiparams")
        == read_bytes(folder / "saved/params.pdiparams"));
}

TEST_CASE("if all ranks are killed at once, the job fails") {
  const temporary_folder folder;
  const auto result =
    run_troupe(elastic("1:2", folder, digits({"--save", folder / "saved"})),
               [](pid_t launch, const std::string& err) {
                 if (!contains(err, "epoch 1/"))
                   return false;
                 for (auto rank : ranks_of(launch))
                   ::kill(rank, SIGKILL);
                 return true;
               });
  CHECK(result.code != 0);
  CHECK_FALSE(fs::exists(folder / "saved"));
}

TEST_CASE("after a rank has ended with success, none is started again") {
  const temporary_folder logs;
  const auto result =
    launch(2, in_rank(1, "sleep 0.1; kill -9 $$", "exit 0"),
           {"--elastic", "1:2", "--grace", "0.1", "--logs", logs / "logs"});
  CHECK(result.code == 128 + SIGKILL);
  CHECK_FALSE(contains(result.err, "started again"));
}

TEST_CASE("a rank that ends with an error is not started again") {
  const temporary_folder logs;
  const auto result =
    launch(2, in_rank(1, "exit 3", "sleep 20"),
           {"--elastic", "1:2", "--grace", "0.1", "--logs", logs / "logs"});
  CHECK(result.code == 3);
  CHECK(contains(last_error(result), "rank 1 failed with exit code 3"));
}

TEST_CASE("the others go on without a rank that is killed again and again") {
  const temporary_folder logs;
  const words options{"--elastic", "1:2", "--logs", logs / "logs"};
  const auto goes_on =
    launch(2, in_rank(1, "kill -9 $$", "sleep 0.7"), options);
  CHECK(goes_on.code == 0);
  CHECK(contains(goes_on.err, "the others go on"));
  const auto too_few =
    launch(2, in_rank(1, "kill -9 $$", "sleep 20"),
           {"--elastic", "2:2", "--grace", "0.1", "--logs", logs / "logs"});
  CHECK(too_few.code == 128 + SIGKILL);
  CHECK(contains(last_error(too_few), "rank 1 was killed by SIGKILL"));
}

TEST_CASE("the log of a rank has the output of all its processes") {
  const temporary_folder logs;
  launch(2,
         in_rank(1,
                 "echo member $TROUPE_MEMBER; [ $TROUPE_MEMBER = 1 ] && kill "
                 "-9 $$; true",
                 "sleep 0.2"),
         {"--elastic", "1:2", "--logs", logs / "logs"});
  CHECK(read_bytes(logs / "logs/rank-1.log") == "member 1\nmember 2\n");
}

TEST_CASE("what cannot be elastic is refused") {
  for (const std::string range :
       {"2", "2:", ":2", "3:2", "0:2", "a:b", "1:2:3", "-1:2", "1 :2"}) {
    CAPTURE(range);
    CHECK(fails_with(run_troupe({"launch", "--elastic", range, "--", "true"}),
                     2, {"--elastic", "MIN:MAX"}));
  }
  CHECK(fails_with(
    run_troupe({"launch", "--elastic", "2:3", "--nodes", "4", "--", "true"}), 2,
    {"--nodes: must be within --elastic 2:3"}));
}

} // TEST_SUITE("apps.elastic")
