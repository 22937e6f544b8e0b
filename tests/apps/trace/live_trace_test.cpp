// SPDX-License-Identifier: Apache-2.0
//
// Traces of a `troupe train` that runs, begun and ended by other processes.
#include "apps/command_runner.hpp"

#include <troupe/apps/trace/trace_request.hpp>

#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe::test;

TEST_SUITE("apps.live_trace") {

namespace {

using json = nlohmann::json;

/// Calls `act` once while a training runs, and then ends it.
command_result while_it_trains(const std::function<void(pid_t)>& act,
                               const words& more = {}) {
  bool is_over = false;
  return run_troupe(words{"train", "mlp", "--synthetic", "--batch", "8",
                          "--steps", "100000000", "--devices", "cpu:1",
                          "--threads", "1"}
                      + more,
                    [&](pid_t process, const std::string& err) {
                      if (is_over || !contains(err, "epoch 2"))
                        return false;
                      is_over = true;
                      act(process);
                      ::kill(process, SIGTERM);
                      return true;
                    });
}

/// The same with two ranks, whose launcher `act` gets.
command_result while_two_ranks_train(const std::function<void(pid_t)>& act) {
  bool is_over = false;
  return run_troupe({"launch", "--nodes", "2", "--", TROUPE_COMMAND, "train",
                     "mlp", "--synthetic", "--batch", "8", "--steps",
                     "100000000", "--threads", "1"},
                    [&](pid_t launcher, const std::string& err) {
                      if (is_over || !contains(err, "epoch 2"))
                        return false;
                      is_over = true;
                      act(launcher);
                      ::kill(launcher, SIGTERM);
                      return true;
                    });
}

command_result trace(const std::string& command, pid_t process,
                     const words& more = {}) {
  return run_troupe(words{"trace", command, std::to_string(process)} + more);
}

json summary_of(const std::string& file) {
  const auto result = run_troupe({"trace", "summary", file, "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  return json::parse(lines_of(result.out).at(0));
}

} // namespace

TEST_CASE("a trace of a running training begins and ends on request") {
  const temporary_folder folder;
  for (const std::string level : {"ops", "messages"}) {
    const std::string file = folder / (level + ".trt");
    const auto run = while_it_trains([&](pid_t process) {
      const auto begun =
        trace("start", process, {"--level", level, "--out", file});
      INFO(begun.err);
      CHECK(begun.code == 0);
      CHECK(begun.out == file + "\n");
      CHECK(fails_with(trace("start", process), 1,
                       {"a trace is being written to " + file}));
      const auto ended = trace("stop", process, {"--json"});
      CHECK(ended.code == 0);
      CHECK(json::parse(ended.out)["file"] == file);
      CHECK(
        fails_with(trace("stop", process), 1, {"no trace is being written"}));
    });
    INFO(run.err);
    CHECK(
      contains(run.err, "a trace of level " + level + " begins in " + file));
    CHECK(contains(run.err, "stopped after step")); // it had gone on
    const auto s = summary_of(file);
    CHECK(s["level"] == level);
    CHECK(s["command"] == "train mlp");
    CHECK(s["processes"][0]["complete"] == true);
  }
}

TEST_CASE("SIGUSR2 alone begins a trace, and ends it") {
  const temporary_folder folder;
  std::string file;
  const auto run = while_it_trains([&](pid_t process) {
    const auto name = "/proc/" + std::to_string(process) + "/cwd/troupe-"
                      + std::to_string(process) + ".trt";
    ::kill(process, SIGUSR2);
    while (!std::filesystem::exists(name))
      ::usleep(1000);
    ::kill(process, SIGUSR2);
    // The next trace can begin when this one has ended.
    file = folder / "next.trt";
    while (trace("start", process, {"--out", file}).code != 0)
      ::usleep(1000);
    const auto s = summary_of(name);
    CHECK(s["processes"][0]["complete"] == true);
    CHECK(s["level"] == "messages");
    CHECK(trace("stop", process).code == 0);
  });
  INFO(run.err);
  CHECK(contains(run.err, "stopped after step"));
  CHECK(summary_of(file)["processes"][0]["complete"] == true);
}

TEST_CASE("the trace of --trace can be ended, and another one begun") {
  const temporary_folder folder;
  const std::string first = folder / "first.trt",
                    second = folder / "second.trt";
  while_it_trains(
    [&](pid_t process) {
      CHECK(trace("stop", process).out == first + "\n");
      CHECK(trace("start", process, {"--out", second}).code == 0);
    },
    {"--trace", first});
  for (const auto& file : {first, second})
    CHECK(summary_of(file)["processes"][0]["complete"] == true);
}

TEST_CASE("a trace that cannot be written is refused, and the run goes on") {
  const temporary_folder folder;
  const auto kept = folder / "kept.trt";
  write_bytes(kept, "of an earlier run");
  const auto run = while_it_trains([&](pid_t process) {
    CHECK(fails_with(trace("start", process, {"--out", "/none/a.trt"}), 1,
                     {"cannot write /none/a.trt"}));
    CHECK(fails_with(trace("start", process, {"--out", kept.string()}), 1,
                     {"cannot write " + kept.string(), "File exists"}));
  });
  CHECK(read_bytes(kept) == "of an earlier run");
  CHECK(
    contains(run.err, "warning: no trace begins: cannot write /none/a.trt"));
  CHECK(contains(run.err, "stopped after step"));
}

TEST_CASE("troupe launch passes a request to its ranks") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", second = folder / "a.1.trt";
  const auto job = while_two_ranks_train([&](pid_t launcher) {
    const auto begun = trace("start", launcher, {"--out", file});
    INFO(begun.err);
    CHECK(begun.code == 0);
    auto files = lines_of(begun.out);
    std::ranges::sort(files);
    CHECK(files == words{second, file});
    const auto ended = trace("stop", launcher, {"--json"});
    CHECK(ended.code == 0);
    CHECK(lines_of(ended.out).size() == 2);
    CHECK(json::parse(lines_of(ended.out).at(0)).contains("process"));
  });
  INFO(job.err);
  const auto both = run_troupe({"trace", "summary", file, second, "--json"});
  INFO(both.err);
  REQUIRE(both.code == 0);
  CHECK(json::parse(lines_of(both.out).at(0))["processes"].size() == 2);
}

TEST_CASE("a trace begins on all ranks of a launch, or on none") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  const auto job = while_two_ranks_train([&](pid_t launcher) {
    // The process of the greater number is asked last.
    const auto begun = trace("start", launcher, {"--json"});
    CHECK(begun.code == 0);
    pid_t last = 0;
    for (const auto& line : lines_of(begun.out)) {
      const auto answer = json::parse(line);
      last = std::max(last, answer["process"].get<pid_t>());
      CHECK(trace("stop", answer["process"].get<pid_t>()).code == 0);
    }
    CHECK(trace("start", last, {"--out", folder / "one.trt"}).code == 0);
    CHECK(fails_with(trace("start", launcher, {"--out", file}), 1,
                     {"a trace is being written to"}));
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK_FALSE(std::filesystem::exists(folder / "a.1.trt"));
  });
  INFO(job.err);
  CHECK(contains(job.err, "no trace begins: a trace is being written to"));
}

TEST_CASE("a request that was given up does nothing later") {
  using troupe::apps::ask_process;
  using troupe::apps::trace_desk;
  const pipe_pair ready;
  const auto asked = in_child([&] {
    trace_desk desk;
    std::signal(SIGUSR2, [](int) {});
    sigset_t request, before;
    sigemptyset(&request);
    sigaddset(&request, SIGUSR2);
    sigprocmask(SIG_BLOCK, &request, &before);
    ready.put(true);
    ::sigsuspend(&before); // until the signal, which comes late
    const bool is_given_up = desk.was_given_up();
    ::_exit(is_given_up && !desk.take() && !desk.was_given_up() ? 0 : 1);
  });
  CHECK(ready.get<bool>());
  ::kill(asked, SIGSTOP);
  CHECK(contains(
    caught([&] { ask_process(asked, {.starts = true}, {}); }).message(),
    "has not answered"));
  ::kill(asked, SIGCONT);
  int status = -1;
  CHECK(::waitpid(asked, &status, 0) == asked);
  CHECK(status == 0);
}

TEST_CASE("processes that cannot be traced are refused with one line") {
  CHECK(fails_with(run_troupe({"trace", "start", "x"}), 2, {"PID"}));
  CHECK(fails_with(run_troupe({"trace", "stop", "0"}), 2, {"PID"}));
  const auto sleeper = in_child([] { ::pause(); });
  CHECK(fails_with(trace("start", sleeper), 1, {"is not troupe but"}));
  CHECK(::kill(sleeper, 0) == 0); // it lives
  ::kill(sleeper, SIGKILL);
  ::waitpid(sleeper, nullptr, 0);
  CHECK(fails_with(trace("stop", sleeper), 1,
                   {"no process " + std::to_string(sleeper)}));
  // Troupe, but without a training.
  run_troupe({"bench", "tasks", "--repeat", "100000"},
             [&](pid_t process, auto&) {
               const auto refused = trace("start", process);
               if (contains(refused.err, "is not troupe")) // not yet
                 return false;
               CHECK(fails_with(refused, 1, {"traces nothing"}));
               CHECK(::kill(process, SIGKILL) == 0);
               return true;
             });
  if (::geteuid() != 0)
    return;
  const auto stranger = in_child([] {
    become_user(100'000'000);
    ::pause();
  });
  while (!contains(trace("start", stranger).err, "is another user's"))
    ::usleep(1000);
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}

} // TEST_SUITE("apps.live_trace")
