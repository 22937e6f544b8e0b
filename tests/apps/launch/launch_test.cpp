// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of `troupe launch` are given, and what it refuses.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>
#include <troupe/base/cores.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe::test;

TEST_SUITE("apps.launch") {

namespace {

using words = std::vector<std::string>;

words sorted_lines(const std::string& text) {
  auto lines = lines_of(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

} // namespace

TEST_CASE("each rank finds its place in its environment") {
  const auto result =
    launch(3, "echo rank $TROUPE_RANK of $TROUPE_SIZE, here $TROUPE_LOCAL_RANK "
              "of $TROUPE_LOCAL_SIZE");
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(sorted_lines(result.out)
        == words{"1| rank 1 of 3, here 1 of 3", "2| rank 2 of 3, here 2 of 3",
                 "rank 0 of 3, here 0 of 3"});
}

TEST_CASE("ranks divide the cores if there are enough") {
  const auto cores = troupe::usable_cores();
  const auto one = lines_of(launch(1, "nproc").out);
  CHECK(one == words{std::to_string(cores)});
  const auto many = launch(cores + 1, "nproc");
  CHECK(contains(many.out, "1| " + std::to_string(cores)));
  if (cores < 2)
    return;
  const auto two =
    sorted_lines(launch(2, "taskset -cp $$ | sed 's/.*: //'").out);
  REQUIRE(two.size() == 2);
  CHECK(two[1].substr(3) != two[0]);
  const auto free = launch(2, "nproc", {"--no-bind"});
  CHECK(contains(free.out, "1| " + std::to_string(cores)));
}

TEST_CASE("ranks share a job that no other launch has") {
  std::vector<std::string> jobs;
  for (int launches = 0; launches < 2; ++launches) {
    const auto lines = lines_of(
      launch(2, "echo $TROUPE_JOB | sed s/^/job=/ >&2").err); // both prefixed
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].substr(3) == lines[1].substr(3));
    CHECK(lines[0].size() > std::string("0| job=").size());
    jobs.push_back(lines[0].substr(3));
  }
  CHECK(jobs[0] != jobs[1]);
}

TEST_CASE("ranks share a folder that only this user can enter") {
  const auto result = launch(2, "cd $TROUPE_RENDEZVOUS && stat -c %a . && pwd");
  CHECK(result.code == 0);
  const auto lines = sorted_lines(result.out);
  REQUIRE(lines.size() == 4); // a path begins with "/", which is below "1"
  CHECK(lines[0].starts_with("/tmp/troupe-"));
  CHECK(lines[1] == "1| " + lines[0]);
  CHECK(lines[2] == "1| 700");
  CHECK(lines[3] == "700");
}

TEST_CASE("the folder is removed however the job ends") {
  const temporary_folder folder;
  const std::string file = folder / "rendezvous";
  const auto note = "touch $TROUPE_RENDEZVOUS/socket; echo $TROUPE_RENDEZVOUS "
                    "> "
                    + file + "; echo ready >&2; ";
  const auto is_removed = [&] {
    const auto name = lines_of(read_bytes(file)).at(0);
    return name.starts_with("/tmp/troupe-") && !std::filesystem::exists(name)
           && !std::filesystem::exists(name + ".logs");
  };
  CHECK(launch(1, note + "exit 0").code == 0);
  CHECK(is_removed());
  CHECK(launch(1, note + "exit 1", {"--logs", folder / "logs"}).code == 1);
  CHECK(is_removed());
  const auto stopped =
    launch(1, note + "sleep 60", {}, [&](pid_t launcher, const auto& err) {
      return contains(err, "ready") && ::kill(launcher, SIGTERM) == 0;
    });
  CHECK(stopped.code == 128 + SIGTERM);
  CHECK(is_removed());
}

TEST_CASE("rank 0 reads the input, the others none") {
  const temporary_folder folder;
  const auto result = run_in(
    folder, "echo hello | troupe launch --nodes 3 -- sh -c '"
              + in_rank(0, "sleep 0.1; cat", "cat; echo $TROUPE_RANK") + "'");
  CHECK(sorted_lines(result.out) == words{"1| 1", "2| 2", "hello"});
}

TEST_CASE("ranks ignore the signals that the caller ignores") {
  const temporary_folder folder;
  const std::string show = "troupe launch --nodes 1 -- grep SigIgn "
                           "/proc/self/status";
  const auto ignored = [&](const std::string& before) {
    const auto result = run_in(folder, before + show);
    CHECK(result.code == 0);
    return std::stoull(result.out.substr(8), nullptr, 16);
  };
  const auto bit = [](int signal) { return 1ull << (signal - 1); };
  const auto of_launcher =
    bit(SIGPIPE) | bit(SIGXFSZ) | bit(SIGCHLD); // for its own sake
  CHECK((ignored("") & of_launcher) == 0);
  CHECK((ignored("trap '' HUP; ") & bit(SIGHUP)) != 0);
  CHECK((ignored("trap '' HUP; ") & bit(SIGTERM)) == 0);
}

TEST_CASE("a command that cannot be started ends with one line") {
  const temporary_folder folder;
  write_bytes(folder / "text", "no program");
  CHECK(fails_with(
    run_troupe({"launch", "--nodes", "2", "--", "troupe-no-such"}), 1,
    {"troupe: cannot start 'troupe-no-such': No such file or directory"}));
  CHECK(fails_with(
    run_troupe({"launch", "--nodes", "2", "--", folder / "text", "-x"}), 1,
    {"text': Permission denied"}));
  CHECK(fails_with(run_troupe({"launch", "--nodes", "1", "--logs",
                               folder / "text", "--", "true"}),
                   1, {"troupe: cannot make the folder ", "text: "}));
}

TEST_CASE("a wrong command line of launch leaves with 2 and one line") {
  const auto with = [](words more) {
    more.insert(more.begin(), "launch");
    return run_troupe(more);
  };
  CHECK(fails_with(
    with({}), 2, {"--nodes, --hosts or --join is required", "launch --help"}));
  CHECK(fails_with(with({"--", "true"}), 2, {"--join is required"}));
  CHECK(fails_with(with({"--nodes", "0", "--", "true"}), 2,
                   {"--nodes: must be more than 0, not 0"}));
  for (const std::string many : {"57", "1000000000000"})
    CHECK(fails_with(with({"--nodes", many, "--", "true"}), 2,
                     {"--nodes: must be at most 56, not " + many
                      + ": a group of ranks that share memory cannot be "
                        "larger"}));
  for (const words& none : {words{}, words{"--"}, words{"--", ""}}) {
    words more{"--nodes", "2"};
    more.insert(more.end(), none.begin(), none.end());
    CHECK(fails_with(with(more), 2, {"a command is missing: troupe launch"}));
  }
  CHECK(fails_with(with({"--nodes", "2", "true"}), 2,
                   {"a -- is missing before the command 'true'"}));
  CHECK(fails_with(with({"--nodes", "2", "troupe", "train", "--json"}), 2,
                   {"a -- is missing before the command 'troupe'"}));
  CHECK(fails_with(with({"--nodes", "2", "--fly", "--", "true"}), 2,
                   {"launch does not take '--fly'"}));
  CHECK(fails_with(with({"--nodes", "1", "--grace", "-1", "--", "true"}), 2,
                   {"--grace: must not be negative, not -1"}));
  CHECK(fails_with(with({"--nodes", "1", "--grace", "86401", "--", "true"}), 2,
                   {"--grace: must be at most 86400"}));
  CHECK(fails_with(with({"--nodes", "1", "--logs", "", "--", "true"}), 2,
                   {"--logs: must not be empty"}));
}

TEST_CASE("the words of the command are its own") {
  const auto result = run_troupe({"launch", "--nodes", "1", "--", "printf",
                                  "%s,", "--nodes", "0", "--", "--help", ""});
  CHECK(result.code == 0);
  CHECK(result.out == "--nodes,0,--,--help,,");
}

TEST_CASE("the help of launch shows an example") {
  const auto result = run_troupe({"launch", "--help"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "Example:\n  troupe launch --nodes 2 -- troupe"));
}

TEST_CASE("a launch within a launch is refused") {
  const temporary_folder folder;
  const auto result =
    launch(2, in_rank(1, TROUPE_COMMAND " launch --nodes 1 -- true", "true"),
           {"--logs", folder / "logs"});
  CHECK(result.code == 2);
  CHECK(contains(result.err, "1| troupe: troupe launch was started by rank 1 "
                             "of another troupe launch (TROUPE_RANK is set)"));
}

TEST_CASE("a command of Troupe can be launched") {
  const auto result = run_troupe(
    {"launch", "--nodes", "2", "--", TROUPE_COMMAND, "doctor", "--json"});
  CHECK(result.code == 0);
  const auto lines = sorted_lines(result.out);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("1| {\"version\":"));
  CHECK(lines[1].starts_with("{\"version\":"));
}

} // TEST_SUITE("apps.launch")
