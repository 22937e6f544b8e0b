// SPDX-License-Identifier: Apache-2.0
//
// How jobs of `troupe launch` end: failures, signals, processes left behind.
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

using namespace troupe::test;

TEST_SUITE("apps.launch_end") {

namespace {

using words = std::vector<std::string>;

// A signal reaches the shell and the sleep that it waits for.
const std::string for_ever = "while :; do sleep 0.02; done";

double seconds_of(const std::function<void()>& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
    .count();
}

/// Sends a signal to the launcher once `ranks` ranks have printed "ready".
while_launched send_if_ready(int signal, std::size_t ranks) {
  return [signal, ranks](pid_t launcher, const std::string& err) {
    return count_of(err, "ready") == ranks && ::kill(launcher, signal) == 0;
  };
}

/// The path behind "output: " in an error, and the folder that holds it.
std::string log_named_in(const std::string& error) {
  const auto begin = error.find("(output: ");
  const auto end = error.find(')', begin);
  return begin == error.npos ? "" : error.substr(begin + 9, end - begin - 9);
}

/// Removes the folder of temporary logs.
void remove_logs_of(const std::string& error) {
  const std::filesystem::path log = log_named_in(error);
  if (log.parent_path().extension() == ".logs")
    std::filesystem::remove_all(log.parent_path());
}

/// A script that notes the numbers of the rank's two processes in a folder.
std::string noting_processes(const temporary_folder& folder) {
  return "sleep 60 & echo $! $$ > " + (folder / "note.$TROUPE_RANK").string()
         + "; echo ready >&2; ";
}

/// The noted numbers of all ranks.
words noted_processes(const temporary_folder& folder, int ranks) {
  words found;
  for (int rank = 0; rank < ranks; ++rank) {
    std::istringstream in(
      read_bytes(folder / ("note." + std::to_string(rank))));
    for (std::string word; in >> word;)
      found.push_back(word);
  }
  return found;
}

/// True if a process has the text in its command line.
bool is_in_a_command(const std::string& text) {
  for (auto& entry : std::filesystem::directory_iterator("/proc"))
    if (contains(read_if_there(entry.path() / "cmdline"), text))
      return true;
  return false;
}

/// In the order in which they were started.
words children_of(pid_t process) {
  const auto id = std::to_string(process);
  std::ifstream in("/proc/" + id + "/task/" + id + "/children");
  words found;
  for (std::string child; in >> child;)
    found.push_back(child);
  return found;
}

bool have_all_ended(const words& processes) {
  return comes_true(
    [&] { return std::all_of(processes.begin(), processes.end(), has_ended); });
}

} // namespace

TEST_CASE("a launch has the exit code of the rank that failed first") {
  const auto result =
    launch(3, in_rank(1,
                      "echo one >&2; echo 'two of it' >&2; "
                      "echo 'warning: none of it' >&2; echo 'flight "
                      "recorder: nor this' >&2; echo 'the trace is in /a.trt' "
                      ">&2; echo 'a trace of level ops begins in /b.trt' >&2; "
                      "echo >&2; exit 3",
                      "sleep 0.1; exit 4"));
  CHECK(result.code == 3);
  const auto error = last_error(result);
  CHECK(error.starts_with("troupe: rank 1 failed with exit code 3 (output: "));
  CHECK(error.ends_with("/rank-1.log): two of it"));
  CHECK(read_bytes(log_named_in(error))
        == "one\ntwo of it\nwarning: none of it\nflight recorder: nor "
           "this\nthe trace is in /a.trt\na trace of level ops begins in "
           "/b.trt\n\n");
  for (const auto* other : {"0", "2"})
    CHECK(count_of(result.err, "troupe: rank " + std::string(other)
                                 + " failed with exit code 4 after rank 1\n")
          == 1);
  CHECK(lines_of(result.err).size() == 10); // with the seven of rank 1
  remove_logs_of(error);
}

TEST_CASE("no secret link to a dashboard is told as the reason of a failure") {
  const auto result = launch(
    1, "echo 'dashboard of rank 1, with controls: http://x/?token=1' >&2; "
       "exit 9");
  CHECK(result.code == 9);
  CHECK_FALSE(contains(last_error(result), "token"));
}

TEST_CASE("a rank without a line on stderr is told of, too") {
  const auto result = launch(1, "exit 9");
  CHECK(result.code == 9);
  CHECK(lines_of(result.err).size() == 1);
  CHECK(result.err.ends_with("/rank-0.log)\n"));
  remove_logs_of(last_error(result));
}

TEST_CASE("a rank that a signal killed is told of with the signal") {
  const temporary_folder folder;
  const auto result =
    launch(2, in_rank(0, "kill -SEGV $$", "true"), {"--logs", folder / "logs"});
  CHECK(result.code == 128 + SIGSEGV);
  CHECK(last_error(result)
        == "troupe: rank 0 was killed by SIGSEGV (output: "
             + (folder / "logs").string() + "/rank-0.log)");
}

TEST_CASE("the rank that failed first is known even if the launcher is late") {
  const temporary_folder folder;
  const std::string pids = folder / "pid", go = folder / "go";
  const auto script = "echo $$ > " + pids
                      + ".$TROUPE_RANK; echo ready >&2; "
                        "until [ -e "
                      + go
                      + ".$TROUPE_RANK ]; do sleep 0.01; done; "
                        "exit $((3 + TROUPE_RANK))";
  const auto ends = [&](const std::string& rank) {
    write_bytes(go + "." + rank, "");
    const auto process = lines_of(read_bytes(pids + "." + rank)).at(0);
    return comes_true([&] { return state_of(process) == 'Z'; });
  };
  const auto late = [&](pid_t launcher, const std::string& err) {
    if (count_of(err, "ready") < 3)
      return false;
    ::kill(launcher, SIGSTOP);
    for (const auto* rank : {"2", "0", "1"})
      CHECK(ends(rank));
    ::kill(launcher, SIGCONT);
    return true;
  };
  const auto result = launch(3, script, {"--logs", folder / "logs"}, late);
  CHECK(result.code == 5);
  CHECK(contains(last_error(result), "rank 2 failed with exit code 5"));
}

TEST_CASE("when a rank has failed the others can end by themselves") {
  const temporary_folder folder;
  const std::string done = folder / "done";
  const auto result = launch(
    2, in_rank(1, "exit 3", "sleep 0.2; touch " + done), {"--grace", "30"});
  CHECK(result.code == 3);
  CHECK(std::filesystem::exists(done));
  remove_logs_of(last_error(result));
}

TEST_CASE("after some time the others get SIGTERM") {
  const temporary_folder folder;
  const auto took = seconds_of([&] {
    const auto result =
      launch(2,
             in_rank(1, "sleep 0.05; exit 3",
                     "trap 'echo told to end; exit 0' TERM; " + for_ever),
             {"--grace", "0.1", "--logs", folder / "logs"});
    CHECK(result.code == 3);
    CHECK(result.out == "told to end\n");
  });
  CHECK(took > 0.15);
  CHECK(took < 30);
}

TEST_CASE("a rank that ignores SIGTERM is killed") {
  const temporary_folder folder;
  const auto took = seconds_of([&] {
    const auto result =
      launch(2, in_rank(1, "sleep 0.05; exit 3", "trap '' TERM; " + for_ever),
             {"--grace", "0.1", "--logs", folder / "logs"});
    CHECK(result.code == 3);
    CHECK(lines_of(result.err).at(0)
          == "troupe: rank 0 was killed by SIGKILL, because it went on after "
             "rank 1 had failed");
  });
  CHECK(took > 0.25);
  CHECK(took < 30);
}

TEST_CASE("signals are passed on to all ranks") {
  for (const auto& [signal, name] : {std::pair<int, std::string>{SIGINT, "INT"},
                                     {SIGTERM, "TERM"},
                                     {SIGHUP, "HUP"},
                                     {SIGQUIT, "QUIT"}}) {
    CAPTURE(name);
    const auto result = launch(
      2, "trap 'echo told; exit 7' " + name + "; echo ready >&2; " + for_ever,
      {}, send_if_ready(signal, 2));
    CHECK(result.code == 7);
    CHECK(count_of(result.out, "told\n") == 2);
    // Whoever stopped the job needs no logs.
    CHECK(contains(last_error(result),
                   " failed with exit code 7 after SIG" + name + ": "));
  }
}

TEST_CASE("ranks that end well after a signal are no failure") {
  const auto result =
    launch(2, "trap 'exit 0' INT; echo ready >&2; " + for_ever, {},
           send_if_ready(SIGINT, 2));
  CHECK(result.code == 0);
  CHECK(lines_of(result.err).size() == 2);
}

TEST_CASE("a second Ctrl-C kills") {
  int sent = 0;
  const auto result =
    launch(2, "trap 'echo no >&2' INT; echo ready >&2; " + for_ever, {},
           [&](pid_t launcher, const std::string& err) {
             if (sent == 0 && count_of(err, "ready") == 2)
               sent += ::kill(launcher, SIGINT) == 0;
             if (sent == 1 && count_of(err, "no\n") == 2)
               sent += ::kill(launcher, SIGINT) == 0;
             return sent == 2;
           });
  CHECK(result.code == 128 + SIGKILL);
  CHECK(contains(last_error(result), " was killed by SIGKILL after SIGINT"));
}

TEST_CASE("a second signal of another kind is passed on") {
  int sent = 0;
  const auto result =
    launch(1,
           "n=0; trap 'n=$((n + 1)); [ $n = 2 ] && exit 0; echo no >&2' TERM; "
           "echo ready >&2; "
             + for_ever,
           {}, [&](pid_t launcher, const std::string& err) {
             if (sent == 0 && contains(err, "ready"))
               sent += ::kill(launcher, SIGTERM) == 0;
             if (sent == 1 && contains(err, "no\n"))
               sent += ::kill(launcher, SIGTERM) == 0;
             return sent == 2;
           });
  CHECK(result.code == 0);
}

TEST_CASE("nothing outlives a launcher that was killed") {
  const temporary_folder folder;
  const std::string place = folder / "place";
  words children;
  const auto result = launch(
    2,
    "echo $TROUPE_RENDEZVOUS > " + place + "; " + noting_processes(folder)
      + "trap '' TERM HUP; wait; " + for_ever,
    {"--logs", folder / "logs"}, [&](pid_t launcher, const std::string& err) {
      children = children_of(launcher);
      return count_of(err, "ready") == 2 && children.size() == 3
             && ::kill(launcher, SIGKILL) == 0;
    });
  CHECK(result.code == 128 + SIGKILL);
  const auto processes = noted_processes(folder, 2);
  CHECK(processes.size() == 4);
  CHECK(have_all_ended(processes));
  CHECK(have_all_ended(children));
  const auto rendezvous = lines_of(read_bytes(place)).at(0);
  CHECK(comes_true([&] { return !std::filesystem::exists(rendezvous); }));
}

TEST_CASE("no rank outlives a launcher and its guardian") {
  const temporary_folder folder;
  const std::string place = folder / "place";
  words children;
  const auto result = launch(
    2, "echo $TROUPE_RENDEZVOUS > " + place + "; echo ready >&2; exec sleep 60",
    {"--logs", folder / "logs"}, [&](pid_t launcher, const std::string& err) {
      children = children_of(launcher);
      if (count_of(err, "ready") < 2 || children.size() < 3)
        return false;
      ::kill(std::stoi(children.back()), SIGKILL); // the youngest
      return ::kill(launcher, SIGKILL) == 0;
    });
  CHECK(result.code == 128 + SIGKILL);
  CHECK(have_all_ended(children));
  CHECK(launch(1, "true").code == 0); // the next job removes what is left
  CHECK_FALSE(std::filesystem::exists(lines_of(read_bytes(place)).at(0)));
}

TEST_CASE("children of the launcher share neither its group nor its files") {
  const auto has_own_group = [](const std::string& child) {
    return ::getpgid(std::stoi(child)) == std::stoi(child);
  };
  const auto files = [](const std::string& process) {
    std::filesystem::directory_iterator first("/proc/" + process + "/fd");
    return std::distance(first, std::filesystem::directory_iterator());
  };
  launch(2, "echo ready >&2; exec sleep 60", {},
         [&](pid_t launcher, const std::string& err) {
           const auto children = children_of(launcher);
           if (count_of(err, "ready") < 2 || children.size() < 3)
             return false;
           CHECK(comes_true([&] { return files(children.back()) == 1; }));
           for (const auto& child : children)
             CHECK(has_own_group(child));
           return ::kill(launcher, SIGTERM) == 0;
         });
}

TEST_CASE("what a rank has started ends with the job") {
  const temporary_folder folder;
  CHECK(launch(2, noting_processes(folder) + "exit 0").code == 0);
  const auto processes = noted_processes(folder, 2);
  CHECK(processes.size() == 4);
  CHECK(have_all_ended(processes));
}

TEST_CASE("ranks end if one cannot be started") {
  const temporary_folder folder;
  // The second log cannot be written, so that only rank 0 starts.
  std::filesystem::create_directories(folder / "logs/rank-1.log");
  const auto result =
    launch(2, noting_processes(folder) + "wait", {"--logs", folder / "logs"});
  CHECK(result.code == 1);
  CHECK(contains(last_error(result), "logs/rank-1.log: Is a directory"));
  // The script of a rank names the folder.
  CHECK(comes_true([&] { return !is_in_a_command(folder.path().string()); }));
}

} // TEST_SUITE("apps.launch_end")
