// SPDX-License-Identifier: Apache-2.0
//
// What `troupe launch` does with the output of the ranks.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
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
  bool was_early = false;
  launch(1, "printf question >&2; sleep 0.3", {},
         [&](pid_t, const std::string& err) {
           was_early = err == "question";
           return was_early;
         });
  CHECK(was_early);
}

TEST_CASE("a line without an end is not mixed with another rank's") {
  const auto result = launch(
    2, in_rank(0, "printf 'a\\nb'; sleep 0.1", "sleep 0.05; printf 'c\\nd'"));
  CHECK(result.out == "a\n1| c\n1| d\nb");
}

TEST_CASE("parts of a line are put together") {
  const auto result = launch(
    2, in_rank(1, "printf 'a '; sleep 0.1; echo b", "sleep 0.05; echo c"));
  CHECK(result.out == "c\n1| a b\n");
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
  CHECK(contains(out, "\n" + std::string(bytes, 'x') + "\nend\n"));
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
  const std::string logs = folder / "new/logs";
  const auto result =
    launch(2,
           "echo out $TROUPE_RANK; sleep 0.05; echo error >&2; sleep 0.05; "
           "printf end",
           {"--logs", logs});
  CHECK(result.code == 0);
  CHECK(read_bytes(logs + "/rank-0.log") == "out 0\nerror\nend");
  CHECK(read_bytes(logs + "/rank-1.log") == "out 1\nerror\nend\n");
  launch(1, "echo again", {"--logs", logs});
  CHECK(read_bytes(logs + "/rank-0.log") == "again\n");
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

TEST_CASE("signals are noticed while the reader of the output waits") {
  const temporary_folder folder;
  const auto result = run_in(
    folder,
    "mkfifo pipe; sleep 5 < pipe & reader=$!; troupe launch --nodes 2 --logs "
    "logs -- yes > pipe & launcher=$!; sleep 0.2; kill -TERM $launcher; sleep "
    "0.1; kill -TERM $launcher; wait $launcher; echo $?; kill -0 $reader && "
    "echo waiting; kill $reader");
  CHECK(result.out == "143\nwaiting\n");
}

} // TEST_SUITE("apps.launch_output")
