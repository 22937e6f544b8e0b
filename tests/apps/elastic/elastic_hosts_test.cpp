// SPDX-License-Identifier: Apache-2.0
//
// Elastic jobs on several hosts. These are addresses of a network of the test's
// own, on which a script plays ssh.
#include "apps/launch/launch_runner.hpp"
#include "apps/launch/played_ssh.hpp"

#include <support/files.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>
#include <troupe/base/random.hpp>
#include <troupe/comm/engine/join.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.elastic.hosts") {

namespace {

namespace fs = std::filesystem;

constexpr int all_steps = 120;

bool can_have_hosts() {
  if (own_network::is_possible() && comm::gloo_support().is_built)
    return true;
  skip_case("needs Gloo, and the right to make a network of its own");
  return false;
}

/// A process of the test's network.
struct network_process {
  pid_t id = 0;
  std::string command;   ///< its second word: "train", "launch-host"
  std::string variables; ///< each between NULs

  bool has(const std::string& variable) const {
    return contains(variables, std::string(1, '\0') + variable + '\0');
  }
};

/// Those of this thread's network that have a variable.
std::vector<network_process> processes_with(const std::string& variable) {
  const auto network = fs::read_symlink("/proc/thread-self/ns/net");
  std::vector<network_process> found;
  std::error_code gone;
  for (auto& entry : fs::directory_iterator("/proc")) {
    if (fs::read_symlink(entry.path() / "ns/net", gone) != network || gone)
      continue;
    network_process p;
    const auto line = read_if_there(entry.path() / "cmdline");
    const auto first = line.find('\0');
    if (first != line.npos)
      p.command =
        line.substr(first + 1, line.find('\0', first + 1) - first - 1);
    p.variables =
      std::string(1, '\0') + read_if_there(entry.path() / "environ");
    if (p.has(variable)) {
      p.id = std::stoi(entry.path().filename().string());
      found.push_back(p);
    }
  }
  return found;
}

std::string host(int number) {
  return own_network::address_of(number);
}

/// The process of a rank, by the place in which it was started; 0 if it is not
/// there.
pid_t rank_in(int place) {
  for (auto& p : processes_with("TROUPE_RANK=" + std::to_string(place)))
    if (p.command == "train")
      return p.id;
  return 0;
}

/// True if a process was started by another, or by one that it started.
bool is_below(pid_t process, pid_t other) {
  while (process > 1 && process != other) {
    const auto stat =
      read_if_there("/proc/" + std::to_string(process) + "/stat");
    const auto end_of_name = stat.rfind(')');
    if (end_of_name == stat.npos
        || std::sscanf(stat.c_str() + end_of_name, ") %*c %d", &process) != 1)
      return false;
  }
  return process == other;
}

void kill_host(int number) {
  for (auto& p : processes_with("ON_HOST=" + host(number)))
    ::kill(p.id, SIGKILL);
}

void check_nothing_is_left() {
  for (int number : {1, 2})
    CHECK(comes_true(
      [&] { return processes_with("ON_HOST=" + host(number)).empty(); }));
}

struct job {
  own_network network;
  temporary_folder folder;
  /// A host that is down cannot be reached, and connections to it end.
  played_ssh ssh{"[ -e " + down()
                 + ".$host ] && echo no route >&2 && exit 255\n"
                   "setsid env -i HOME=\"$HOME\" PATH=\"$PATH\" "
                   "ON_HOST=\"$host\" sh -c \"$*\"\ncode=$?\n[ -e "
                 + down() + ".$host ] && exit 255\nexit $code"};

  std::string down() const { return (folder / "down").string(); }
  words digits(const words& more = {}) const {
    return words{"train",     "digits",
                 "--data",    TROUPE_DATA "/digits",
                 "--seed",    "3",
                 "--slow",    "mean=10ms",
                 "--steps",   std::to_string(all_steps),
                 "--metrics", folder / "m.jsonl"}
           + more;
  }
  /// Two ranks on each of two hosts.
  command_result run(const std::string& range, const words& command,
                     const while_launched& while_running = {}) const {
    return ssh.launch_command(
      host(1) + ":2," + host(2) + ":2",
      words{TROUPE_COMMAND} + command + words{"--data-network", "trusted"},
      {"--elastic", range, "--grace", "0.5", "--logs", folder / "logs"},
      while_running);
  }
  void set_down(int number, bool yes = true) const {
    const auto path = folder / ("down." + host(number));
    if (yes)
      write_bytes(path, "");
    else
      fs::remove(path);
  }
  /// The numbers of the steps in the metrics must be 0, 1, 2, ...
  void check_steps() const {
    const auto lines = lines_of(read_bytes(folder / "m.jsonl"));
    CHECK(lines.size() == all_steps);
    for (std::size_t i = 0; i < lines.size(); ++i)
      CHECK(lines[i].starts_with("{\"step\":" + std::to_string(i) + ","));
  }
};

bool trains(const std::string& err) {
  return contains(err, "epoch 1/");
}

} // namespace

TEST_CASE("ranks are killed on several hosts, and training ends as if none had "
          "been") {
  if (!can_have_hosts())
    return;
  const job j;
  REQUIRE(j.ssh
            .launch_command(host(1) + ":2," + host(2) + ":2",
                            {TROUPE_COMMAND, "train", "digits", "--data",
                             TROUPE_DATA "/digits", "--seed", "3", "--steps",
                             std::to_string(all_steps), "--data-network",
                             "trusted", "--save", j.folder / "whole",
                             "--metrics", j.folder / "whole.jsonl"})
            .code
          == 0);
  splitmix64 draw{8};
  std::size_t kills = 0;
  // Rank 0 is that of place 0 at first: the next rank 0 is on the same host,
  // then on the other one.
  const std::vector<int> victims{0, 1, 3};
  const auto result =
    j.run("1:4", j.digits({"--save", j.folder / "saved"}),
          [&](pid_t, const std::string& err) {
            if (!trains(err) || count_of(err, "goes on after step") < kills
                || draw.below(4) != 0)
              return false;
            const auto victim = rank_in(victims[kills]);
            if (victim == 0)
              return false;
            ::kill(victim, SIGKILL);
            return ++kills == victims.size();
          });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(kills == victims.size());
  CHECK(contains(result.err, "rank 0 on host " + host(1)
                               + " failed with exit code 137 (SIGKILL) and is "
                                 "started again"));
  CHECK(read_bytes(j.folder / "whole/params.pdiparams")
        == read_bytes(j.folder / "saved/params.pdiparams"));
  CHECK(metrics_before("losses", j.folder / "whole.jsonl")
        == metrics_before("losses", j.folder / "m.jsonl"));
  check_nothing_is_left();
}

TEST_CASE("a host dies with its ranks, the others go on, and it comes back") {
  if (!can_have_hosts())
    return;
  for (const int victim : {2, 1}) { // 1 has rank 0
    CAPTURE(victim);
    const job j;
    int stage = 0;
    const auto result =
      j.run("1:4", j.digits(), [&](pid_t, const std::string& err) {
        if (stage == 0 && trains(err)) {
          j.set_down(victim);
          kill_host(victim);
          ++stage;
        }
        if (stage == 1 && contains(err, "in 2 ranks")) {
          j.set_down(victim, false);
          ++stage;
        }
        return stage == 2;
      });
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK(stage == 2);
    CHECK(contains(result.err, "host " + host(victim) + " is lost ("));
    j.check_steps();
    check_nothing_is_left();
  }
}

TEST_CASE("ranks of a host that is there again join the others") {
  if (!can_have_hosts())
    return;
  const job j;
  bool is_killed = false;
  const auto result =
    j.run("1:4",
          words{"train", "digits", "--data", TROUPE_DATA "/digits", "--slow",
                "mean=10ms", "--steps", "100000000"},
          [&](pid_t launch, const std::string& err) {
            if (!is_killed && trains(err)) {
              is_killed = true; // what keeps the folder is enough
              for (auto& p : processes_with("ON_HOST=" + host(2)))
                if (p.command == "launch-host")
                  ::kill(p.id, SIGKILL);
            }
            const auto back = err.find("is there again");
            return back != err.npos && err.find("in 4 ranks", back) != err.npos
                   && ::kill(launch, SIGTERM) == 0;
          });
  INFO(result.err);
  CHECK(result.code == 1);
  CHECK(contains(result.err, "stopped after step"));
  CHECK(contains(result.err,
                 "host " + host(2) + " is lost (troupe launch-host there "));
  check_nothing_is_left();
}

TEST_CASE("ranks of another host join those of several") {
  if (!can_have_hosts())
    return;
  const job j;
  j.set_down(4);
  command_result nameless, known, many, unreachable, answer;
  bool has_asked = false;
  const auto result = j.ssh.launch_command(
    host(1) + "," + host(2),
    {TROUPE_COMMAND, "train", "digits", "--data", TROUPE_DATA "/digits",
     "--slow", "mean=10ms", "--steps", "100000000", "--data-network",
     "trusted"},
    {"--elastic", "2:4", "--grace", "0.5", "--logs", j.folder / "logs"},
    [&](pid_t launch, const std::string& err) {
      const auto join = [&](const words& options) {
        return run_troupe(words{"launch", "--join", std::to_string(launch)}
                          + options);
      };
      if (!has_asked && trains(err)) {
        has_asked = true;
        nameless = join({});
        known = join({"--hosts", host(2)});
        many = join({"--hosts", host(3) + ":3"});
        unreachable = join({"--hosts", host(4)});
      }
      if (answer.code != 0 && contains(err, "host " + host(4) + " is lost"))
        answer = join({"--hosts", host(3) + ":2"});
      return contains(err, "in 4 ranks") && ::kill(launch, SIGTERM) == 0;
    });
  INFO(result.err);
  CHECK(result.code == 1);
  CHECK(contains(result.err, "stopped after step"));
  CHECK(contains(result.err, "more ranks can join: troupe launch --join "));
  CHECK(fails_with(nameless, 1, {"--hosts must name those that join"}));
  CHECK(fails_with(known, 1, {"'" + host(2) + "' is there twice"}));
  CHECK(fails_with(many, 1, {"3 more cannot join"}));
  CHECK(unreachable.code == 0); // it is tried
  CHECK(answer.err == "troupe: 2 ranks are started\n");
  CHECK(contains(result.err, "rank 4 is started on host " + host(3)
                               + " to join the others"));
  check_nothing_is_left();
  CHECK(
    comes_true([&] { return processes_with("ON_HOST=" + host(3)).empty(); }));
}

TEST_CASE("a job without enough ranks fails with one line") {
  if (!can_have_hosts())
    return;
  const job j;
  bool is_killed = false;
  const auto result =
    j.run("3:4", j.digits(), [&](pid_t, const std::string& err) {
      if (!is_killed && trains(err)) {
        is_killed = true;
        j.set_down(2);
        kill_host(2);
      }
      return is_killed;
    });
  CHECK(result.code == 1);
  CHECK(
    last_error(result).starts_with("troupe: host " + host(2) + " is lost ("));
  CHECK(last_error(result).ends_with("too few ranks are left: 2"));
  check_nothing_is_left();
}

TEST_CASE("the others begin without a host that cannot be reached") {
  if (!can_have_hosts())
    return;
  const job j;
  j.set_down(1);
  const auto result = j.run("1:4", j.digits());
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "host " + host(1) + " is lost ("));
  CHECK(contains(result.err, "no route"));
  CHECK(contains(result.err, "in each of 2 ranks"));
  j.check_steps();
  check_nothing_is_left();
}

TEST_CASE("nothing of an elastic job outlives a launcher that was killed") {
  if (!can_have_hosts())
    return;
  const job j;
  std::string meeting;
  const auto result =
    j.run("1:4", j.digits(), [&](pid_t launch, const std::string& err) {
      if (!trains(err))
        return false;
      for (auto& p : processes_with("TROUPE_RANK=3"))
        meeting =
          p.variables.substr(p.variables.find("TROUPE_RENDEZVOUS=") + 18);
      return ::kill(launch, SIGKILL) == 0;
    });
  CHECK(result.code == 128 + SIGKILL);
  meeting.resize(meeting.find('\0'));
  CHECK(contains(meeting, ".host-1.1"));
  check_nothing_is_left();
  CHECK(comes_true([&] { return !fs::exists(meeting); }));
}

TEST_CASE("a stopped rank of another host is killed and started again") {
  if (!can_have_hosts())
    return;
  const job j;
  bool is_stopped = false;
  const auto result =
    j.run("1:4", j.digits(), [&](pid_t, const std::string& err) {
      if (!is_stopped && trains(err))
        is_stopped = ::kill(rank_in(0), SIGSTOP) == 0;
      return is_stopped;
    });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "rank 0 hangs: it is killed"));
  CHECK(contains(result.err, "(SIGKILL) and is started again"));
  j.check_steps();
  check_nothing_is_left();
}

TEST_CASE("ranks of one other host meet in its memory") {
  const temporary_folder folder;
  const played_ssh ssh;
  const auto result = ssh.launch_command(
    "localhost:2",
    {TROUPE_COMMAND, "train", "mlp", "--synthetic", "--steps", "5"},
    {"--elastic", "1:2", "--logs", folder / "logs"});
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "in each of 2 ranks"));
}

TEST_CASE("a network between elastic ranks must be said to be trusted") {
  if (!can_have_hosts())
    return;
  const job j;
  const auto result = j.ssh.launch_command(
    host(1) + "," + host(2), words{TROUPE_COMMAND} + j.digits(),
    {"--elastic", "1:2", "--grace", "0.5", "--logs", j.folder / "logs"});
  CHECK(result.code == 2);
  CHECK(contains(last_error(result), "--data-network trusted"));
}

TEST_CASE("a host that gives no sign of life is lost, and tried again") {
  const temporary_folder folder;
  const auto path = folder.path().string();
  const played_ssh ssh;
  std::vector<pid_t> stopped;
  const auto result = ssh.launch(
    "a,b",
    "echo $PPID > " + path + "/$ON_HOST.$$; echo ready >&2; until [ -e " + path
      + "/go ]; do sleep 0.02; done",
    {"--elastic", "1:2", "--logs", folder / "logs"},
    [&](pid_t launch, const std::string& err) {
      if (stopped.empty() && count_of(err, "ready") == 2)
        for (auto& p : processes_with("ON_HOST=b"))
          if (p.command == "launch-host" && is_below(p.id, launch))
            if (::kill(p.id, SIGSTOP) == 0)
              stopped.push_back(p.id);
      if (count_of(err, "ready") < 3)
        return false;
      write_bytes(folder / "go", "");
      return true;
    });
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "troupe: host b is lost (it gives no sign of life)"
                             ", the others go on"));
  CHECK(contains(result.err, "troupe: host b is there again"));
  for (const auto process : stopped) // they see that the launcher is gone
    ::kill(process, SIGCONT);
  for (const auto process : stopped)
    CHECK(comes_true([&] { return has_ended(std::to_string(process)); }));
}

TEST_CASE("a job on a single other host cannot be joined") {
  const temporary_folder folder;
  const played_ssh ssh;
  command_result answer;
  const auto go = (folder / "go").string();
  const auto result = ssh.launch(
    "localhost:2",
    "echo ready >&2; until [ -e " + go + " ]; do sleep 0.01; done",
    {"--elastic", "1:4", "--logs", folder / "logs"},
    [&](pid_t launch, const std::string& err) {
      if (!contains(err, "ready"))
        return false;
      answer = run_troupe({"launch", "--join", std::to_string(launch)});
      write_bytes(go, "");
      return true;
    });
  CHECK(result.code == 0);
  CHECK_FALSE(contains(result.err, "more ranks can join"));
  CHECK(fails_with(answer, 1, {"the job is on one other host"}));
}

} // TEST_SUITE("apps.elastic.hosts")
