// SPDX-License-Identifier: Apache-2.0
//
// Runs that go on from a snapshot.
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <troupe/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.snapshots.resume") {

namespace {

namespace fs = std::filesystem;

const std::string digits = TROUPE_DATA "/digits";

/// Trains a net on made-up data.
words training(const std::string& net, const words& more) {
  return words{"train", net, "--synthetic", "--batch", "6", "--seed", "5"}
         + more;
}

words with_snapshots(const fs::path& folder, const words& more = {}) {
  return words{"--snapshots", folder.string(), "--snapshot-every", "5"} + more;
}

/// True if two program folders have the same files.
bool same_folders(const fs::path& a, const fs::path& b) {
  std::size_t files = 0, others = 0;
  for (auto& entry : fs::recursive_directory_iterator(a))
    if (entry.is_regular_file()) {
      ++files;
      const auto other = b / fs::relative(entry.path(), a);
      if (!fs::exists(other) || read_bytes(entry.path()) != read_bytes(other))
        return false;
    }
  for (auto& entry : fs::recursive_directory_iterator(b))
    others += entry.is_regular_file();
  return files > 0 && files == others;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != "owner")
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string file_of(int step) {
  return "step-000000" + std::string(step < 10 ? "0" : "")
         + std::to_string(step) + ".rank-0-of-1.npz";
}

} // namespace

TEST_CASE("a run that goes on from a snapshot ends as if never interrupted") {
  // Dropout; batch norm, whose statistics each device keeps for itself.
  for (const std::string net : {"digits", "resnet8"})
    for (const words& on :
         {words{"--devices", "cpu:1"},
          words{"--devices", "cpu:2", "--strategy", "all_reduce"},
          words{"--devices", "cpu:2", "--strategy", "reduce"},
          words{"--devices", "cpu:2", "--strategy", "none"}}) {
      CAPTURE(net);
      CAPTURE(on.back());
      const temporary_folder folder;
      const auto train = [&](const words& more) {
        const auto result = run_troupe(training(net, on) + more);
        CHECK(result.code == 0);
        return result;
      };
      train({"--steps", "17", "--save", folder / "whole", "--metrics",
             folder / "whole.jsonl"});
      const auto snapshots = with_snapshots(
        folder / "s", {"--resume", "auto", "--metrics", folder / "m.jsonl"});
      const auto first = train(snapshots + words{"--steps", "13"});
      CHECK(contains(first.err, "no snapshot in"));
      const auto second =
        train(snapshots + words{"--steps", "17", "--save", folder / "resumed"});
      CHECK(contains(second.err, "goes on from"));
      CHECK(contains(second.err, "trained 7 steps"));
      CHECK(same_folders(folder / "whole", folder / "resumed"));
      CHECK(metrics_before("ms", folder / "whole.jsonl")
            == metrics_before("ms", folder / "m.jsonl"));
    }
}

TEST_CASE("a run that is killed again and again ends as if it never was") {
  const temporary_folder folder;
  const words on{"train", "digits",    "--data", digits,   "--epochs",
                 "2",     "--devices", "cpu:1",  "--save", folder / "saved"};
  REQUIRE(run_troupe(on).code == 0);
  fs::rename(folder / "saved", folder / "whole");
  splitmix64 draw{7};
  const auto snapshots = with_snapshots(folder / "s", {"--resume", "auto"});
  for (int round = 0; round < 12; ++round) {
    auto left = draw.below(25); // calls, every 5 ms
    run_troupe(on + snapshots, [&](pid_t process, const std::string&) {
      if (left-- > 0)
        return false;
      ::kill(process, SIGKILL);
      return true;
    });
  }
  CHECK(run_troupe(on + snapshots).code == 0);
  CHECK(same_folders(folder / "whole", folder / "saved"));
  for (auto& name : names_in(folder / "s"))
    CHECK(name.ends_with(".rank-0-of-1.npz"));
}

TEST_CASE("snapshots are taken at ends of updates, and runs go on from them") {
  // A snapshot is due after 5, 10 and 15 steps. An epoch has 8 steps, so
  // updates end after 3, 6, 8, 11, 14, 16 and 17.
  for (const std::string net : {"digits", "resnet8"})
    for (const words& on :
         {words{"--devices", "cpu:1"},
          words{"--devices", "cpu:2", "--strategy", "all_reduce"},
          words{"--devices", "cpu:2", "--strategy", "reduce"}}) {
      CAPTURE(net);
      CAPTURE(on.back());
      const temporary_folder folder;
      const auto train = [&](const words& more) {
        return run_troupe(training(net, on) + words{"--accumulate", "3"}
                          + more);
      };
      REQUIRE(train({"--steps", "17", "--save", folder / "whole"}).code == 0);
      const auto snapshots = with_snapshots(folder / "s", {"--resume", "auto"});
      REQUIRE(train(snapshots + words{"--steps", "13"}).code == 0);
      CHECK(names_in(folder / "s") == words{file_of(6), file_of(11)});
      const auto second =
        train(snapshots + words{"--steps", "17", "--save", folder / "resumed"});
      CHECK(contains(second.err, "trained 6 steps"));
      CHECK(same_folders(folder / "whole", folder / "resumed"));
      const auto other =
        run_troupe(training(net, on) + snapshots + words{"--steps", "20"});
      CHECK(other.code == 1);
      CHECK(contains(other.err, "is of a run with steps per update: 3, this "
                                "run has 1"));
    }
}

TEST_CASE("if the newest snapshot is damaged, the one before it is taken") {
  const temporary_folder folder;
  const auto on = training("digits", {"--devices", "cpu:1"});
  REQUIRE(
    run_troupe(on + words{"--steps", "12", "--save", folder / "whole"}).code
    == 0);
  const auto snapshots = with_snapshots(folder / "s");
  for (const bool is_short : {true, false}) {
    fs::remove_all(folder / "s");
    REQUIRE(run_troupe(on + snapshots + words{"--steps", "10"}).code == 0);
    const auto newest = fs::path{folder / "s"} / file_of(10);
    auto bytes = read_bytes(newest);
    if (is_short)
      bytes.resize(bytes.size() / 2);
    else
      bytes[bytes.size() / 2] ^= 1; // within an array
    write_bytes(newest, bytes);
    const auto result = run_troupe(
      on + snapshots
      + words{"--steps", "12", "--resume", "auto", "--save", folder / "saved"});
    CHECK(result.code == 0);
    CHECK(contains(result.err, "warning: a snapshot cannot be read"));
    CHECK(contains(result.err, file_of(10)));
    CHECK(contains(result.err, "goes on from"));
    CHECK(contains(result.err, "trained 7 steps"));
    CHECK(same_folders(folder / "whole", folder / "saved"));
    fs::remove_all(folder / "saved");
  }
}

TEST_CASE("as many snapshots are kept as wished") {
  const temporary_folder folder;
  const auto on = training("digits", {"--devices", "cpu:1", "--steps", "22"});
  CHECK(run_troupe(on + with_snapshots(folder / "two")).code == 0);
  CHECK(names_in(folder / "two") == words{file_of(15), file_of(20)});
  CHECK(run_troupe(on + with_snapshots(folder / "all", {"--keep", "99"})).code
        == 0);
  CHECK(names_in(folder / "all").size() == 4);
}

TEST_CASE("a run with all steps done trains none and saves") {
  const temporary_folder folder;
  const auto on =
    training("digits", {"--devices", "cpu:1", "--steps", "5", "--json"})
    + with_snapshots(folder / "s", {"--resume", "auto"});
  CHECK(run_troupe(on).code == 0);
  const auto again = run_troupe(on + words{"--save", folder / "saved"});
  CHECK(again.code == 0);
  CHECK(contains(again.out, "\"steps\":0"));
  CHECK(fs::exists(folder / "saved"));
}

TEST_CASE("a run does not go on from the snapshots of another one") {
  const temporary_folder folder;
  const auto snapshots = with_snapshots(folder / "s");
  const words length{"--devices", "cpu:1", "--steps", "6"};
  REQUIRE(run_troupe(training("digits", length) + snapshots).code == 0);
  CHECK(fails_with(run_troupe(training("digits", length) + snapshots), 2,
                   {"has snapshots of an earlier run", "--resume auto"}));
  const auto resumed = snapshots + words{"--resume", "auto"};
  CHECK(fails_with(
    run_troupe(training("digits", length) + resumed + words{"--seed", "6"}), 1,
    {"step-00000005 is of a run with seed 5, this run has 6"}));
  CHECK(fails_with(
    run_troupe(training("digits", length) + resumed + words{"--batch", "7"}), 1,
    {"batches of 6, this run has 7"}));
  CHECK(fails_with(run_troupe(training("mlp", length) + resumed), 1,
                   {"with the program"}));
  CHECK(fails_with(
    run_troupe(training("digits", length) + resumed + words{"--steps", "3"}), 1,
    {"the snapshot has 5 steps, this run ends after 3"}));
}

TEST_CASE("a snapshot loads on another number of devices") {
  const temporary_folder folder;
  const auto snapshots = with_snapshots(folder / "s", {"--resume", "auto"});
  REQUIRE(run_troupe(training("resnet8", {"--devices", "cpu:2", "--steps", "5"})
                     + snapshots)
            .code
          == 0);
  const auto result = run_troupe(
    training("resnet8", {"--devices", "cpu:3", "--steps", "7"}) + snapshots);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "trained 2 steps"));
}

TEST_CASE("two runs do not use one folder at the same time") {
  const temporary_folder folder;
  const auto on =
    training("digits", {"--devices", "cpu:1", "--steps", "1000000"})
    + with_snapshots(folder / "s", {"--resume", "auto"});
  run_troupe(on, [&](pid_t process, const std::string&) {
    if (!fs::exists(folder / "s") || names_in(folder / "s").empty())
      return false;
    CHECK(fails_with(
      run_troupe(on), 1,
      {"s is used by another run (process " + std::to_string(process) + " on ",
       "wait until it has ended, or use another folder"}));
    ::kill(process, SIGKILL);
    return true;
  });
  // The next run gets as far as to read the snapshots of the killed one.
  CHECK(fails_with(run_troupe(on + words{"--seed", "6"}), 1,
                   {"is of a run with seed 5, this run has 6"}));
}

TEST_CASE("wrong options of snapshots are refused") {
  const temporary_folder folder;
  const auto run = [&](const words& more) {
    return run_troupe(training("digits", more));
  };
  const std::string s = folder / "s";
  CHECK(fails_with(run({"--snapshots", s}), 2, {"--snapshot-every"}));
  CHECK(fails_with(run({"--snapshot-every", "5"}), 2, {"--snapshots"}));
  CHECK(fails_with(run({"--resume", "auto"}), 2, {"--snapshots"}));
  CHECK(fails_with(run(with_snapshots(s, {"--keep", "0"})), 2, {"--keep"}));
  CHECK(fails_with(run(with_snapshots(s, {"--resume", "x"})), 2, {"--resume"}));
  CHECK(fails_with(run(with_snapshots(s, {"--dry-run"})), 2, {"--dry-run"}));
  write_bytes(folder / "file", "");
  CHECK(fails_with(run(with_snapshots(folder / "file")), 1, {folder / "file"}));
  CHECK_FALSE(fs::exists(s));
}

} // TEST_SUITE("apps.snapshots.resume")
