// SPDX-License-Identifier: Apache-2.0
//
// What `troupe launch` does with the output of the ranks.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

using namespace troupe::test;

TEST_SUITE("apps.launch_output") {

namespace {

using words = std::vector<std::string>;

words lines_with(const std::string& begin, const std::string& text) {
  words found;
  for (const auto& line : lines_of(text))
    if (line.starts_with(begin))
      found.push_back(line.substr(begin.size()));
  return found;
}

/// A script that prints `bytes` times the letter x, without an end of line.
std::string xs(std::size_t bytes) {
  return "head -c " + std::to_string(bytes) + " /dev/zero | tr '\\0' x";
}

} // namespace

TEST_CASE("lines of ranks other than 0 begin with the rank") {
  const auto result = launch(2, "echo out; echo; echo error >&2");
  CHECK(result.code == 0);
  CHECK(lines_with("1| ", result.out) == words{"out", ""});
  CHECK(lines_of(result.out).size() == 4);
  CHECK(lines_with("out", result.out) == words{""});
  CHECK(lines_with("0| ", result.err) == words{"error"});
  CHECK(lines_with("1| ", result.err) == words{"error"});
}

TEST_CASE("the output of a single rank is not changed") {
  const auto result = launch(1, "printf 'a\\n\\nb'; printf error >&2");
  CHECK(result.out == "a\n\nb");
  CHECK(result.err == "error");
}

TEST_CASE("the output of a single rank comes at once") {
  const temporary_folder folder;
  for (const std::string stream : {"1", "2"}) {
    // The rank waits for an answer to its question, but not for ever.
    const auto result = run_in(
      folder,
      "rm -f answer; troupe launch --nodes 1 -- sh -c 'printf question >&"
        + stream
        + "; for i in $(seq 600); do [ -e answer ] && exit; sleep 0.1; done; "
          "echo late' "
        + stream
        + "> out & until grep -q question out; do sleep 0.01; done; touch "
          "answer; wait; cat out");
    CHECK(result.out == "question");
  }
}

TEST_CASE("a line without an end is not mixed with another rank's") {
  const auto result = launch(
    2, in_rank(0, "printf 'a\\nb'; sleep 0.1", "sleep 0.05; printf 'c\\nd'"));
  auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines.back() == "b");
  std::ranges::sort(lines); // on a busy machine rank 0 can be late
  CHECK(lines == words{"1| c", "1| d", "a", "b"});
}

TEST_CASE("what rank 0 prints last has no other line behind it") {
  const temporary_folder folder;
  const std::string go = folder / "go", pid = folder / "pid";
  // All is there when the launcher looks again.
  const auto stop = [&](pid_t launcher, const std::string& err) {
    if (count_of(err, "ready") < 2)
      return false;
    ::kill(launcher, SIGSTOP);
    write_bytes(go, "");
    for (const auto* rank : {".0", ".1"}) {
      const auto process = lines_of(read_bytes(pid + rank)).at(0);
      CHECK(comes_true([&] { return has_ended(process); }));
    }
    return ::kill(launcher, SIGCONT) == 0;
  };
  const auto result =
    launch(2,
           "echo $$ > " + pid + ".$TROUPE_RANK; echo ready >&2; until [ -e "
             + go + " ]; do sleep 0.01; done; printf $TROUPE_RANK",
           {}, stop);
  CHECK(result.out == "1| 1\n0");
}

TEST_CASE("parts of a line are put together") {
  const auto result = launch(
    2, in_rank(1, "printf 'a '; sleep 0.1; echo b", "sleep 0.05; echo c"));
  // On a busy machine rank 0 can be late.
  CHECK((result.out == "c\n1| a b\n" || result.out == "1| a b\nc\n"));
}

TEST_CASE("very long lines of other ranks are cut") {
  constexpr std::size_t bytes = 2'500'000;
  const auto out =
    launch(2, in_rank(1, xs(bytes) + "; echo; echo end", "true")).out;
  const auto parts = lines_with("1| ", out);
  CHECK(parts.size() == 4);
  CHECK(parts.back() == "end");
  CHECK(count_of(out, "x") == bytes);
  CHECK(lines_of(out).size() == parts.size());
}

TEST_CASE("very long lines of rank 0 are whole") {
  constexpr std::size_t bytes = 2'500'000;
  const auto out =
    launch(2, in_rank(0, xs(bytes) + "; echo; echo end",
                      "for i in 1 2 3 4 5; do echo; sleep 0.01; done"))
      .out;
  // Rank 0 can be the first to print, and a line of rank 1 can come between its
  // two lines.
  CHECK(contains("\n" + out, "\n" + std::string(bytes, 'x') + "\n"));
  CHECK(contains(out, "\nend\n"));
  CHECK(lines_with("1| ", out).size() == 5);
}

TEST_CASE("many lines of several ranks are not mixed") {
  constexpr int ranks = 4, lines = 1000;
  const auto result =
    launch(ranks, "i=0; while [ $i -lt " + std::to_string(lines)
                    + " ]; do printf 'rank %d ' $TROUPE_RANK; echo line $i; "
                      "i=$((i + 1)); done");
  CHECK(result.code == 0);
  CHECK(lines_of(result.out).size() == ranks * lines);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto number = std::to_string(rank);
    const auto found =
      lines_with((rank == 0 ? "rank " : number + "| rank ") + number + " line ",
                 result.out);
    REQUIRE(found.size() == lines);
    for (int i = 0; i < lines; ++i)
      REQUIRE(found[static_cast<std::size_t>(i)] == std::to_string(i));
  }
}

TEST_CASE("the log of a rank has all its output, without prefixes") {
  const temporary_folder folder;
  const std::string logs = folder / "logs";
  // Two streams keep no order, unless one is read before the other is written.
  const auto is_read = [&](const std::string& text) {
    return "until grep -q " + text + " " + logs
           + "/rank-$TROUPE_RANK.log; do sleep 0.01; done; ";
  };
  const auto result =
    launch(2,
           "echo out $TROUPE_RANK; " + is_read("out") + "echo error >&2; "
             + is_read("error") + "printf end",
           {"--logs", logs});
  CHECK(result.code == 0);
  CHECK(read_bytes(logs + "/rank-0.log") == "out 0\nerror\nend");
  CHECK(read_bytes(logs + "/rank-1.log") == "out 1\nerror\nend\n");
  launch(1, "echo again", {"--logs", logs});
  CHECK(read_bytes(logs + "/rank-0.log") == "again\n");
}

TEST_CASE("logs in a folder that is not there are refused") {
  const temporary_folder folder;
  CHECK(fails_with(launch(1, "true", {"--logs", folder / "no/logs"}), 1,
                   {"troupe: cannot make the folder ",
                    "/no/logs: No such file or directory"}));
  CHECK_FALSE(std::filesystem::exists(folder / "no"));
}

TEST_CASE("ranks end if nobody reads what they print") {
  const temporary_folder folder;
  const auto result = run_in(
    folder, "{ troupe launch --nodes 2 --grace 0.1 --logs logs -- sh -c "
            "\"trap '' PIPE; while :; do echo y; done\"; echo $? > code; } | "
            "head -n 1");
  CHECK(contains(result.err,
                 "troupe: cannot write to standard output: Broken pipe\n"));
  CHECK(read_bytes(folder / "code") == "1\n");
}

TEST_CASE("ranks end if a log cannot be written") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, "ulimit -f 8; troupe launch --nodes 2 --grace 0.1 --logs "
                   "logs -- sh -c 'while :; do echo y; done' > /dev/null");
  CHECK(result.code == 1);
  CHECK(contains(result.err, "troupe: cannot write logs/rank-"));
  CHECK(contains(result.err, ".log: File too large\n"));
}

// `troupe` is a function of the shell: in the background it would be a shell.
TEST_CASE("the launcher notices signals while nobody reads the output") {
  const temporary_folder folder;
  const auto line = std::string(4000, 'x');
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_in(
    folder,
    "mkfifo pipe; sleep 60 < pipe & reader=$!; " TROUPE_COMMAND
    " launch --nodes 2 --logs "
    "logs -- yes "
      + line
      + " > pipe & launcher=$!; until [ -s logs/rank-0.log ] || [ -s "
        "logs/rank-1.log ]; do sleep 0.01; done; sleep 0.2; kill -TERM "
        "$launcher; sleep 0.1; kill -TERM $launcher; wait $launcher; echo $?; "
        "kill $reader");
  CHECK(result.out == "143\n");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  // Nor does it take in more than it can pass on.
  for (const auto* log : {"logs/rank-0.log", "logs/rank-1.log"})
    CHECK(std::filesystem::file_size(folder / log) < std::size_t{4} << 20);
}

TEST_CASE("the end of a job comes while nobody reads the output") {
  const temporary_folder folder;
  const auto line = std::string(4000, 'x');
  const auto begin = std::chrono::steady_clock::now();
  // Rank 0 prints more than all buffers hold, when rank 1 has failed. The
  // launch, which waits for the reader at the end, is told to give up.
  const auto result =
    run_in(folder,
           "mkfifo pipe; sleep 60 < pipe & reader=$!; " TROUPE_COMMAND
           " launch --nodes 2 "
           "--grace 0.4 --logs logs -- sh -c '"
             + in_rank(0,
                       "trap \"touch told; exit 0\" TERM; yes " + line
                         + " & touch ready; wait",
                       "until [ -e ready ]; do sleep 0.01; done; exit 3")
             + "' > pipe & launcher=$!; for i in $(seq 200); do [ -e told ] && "
               "break; sleep 0.1; done; ls told; sleep 0.1; kill -TERM "
               "$launcher; wait $launcher; "
               "echo $?; kill $reader");
  CHECK(result.out == "told\n3\n");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

} // TEST_SUITE("apps.launch_output")
