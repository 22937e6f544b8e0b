// SPDX-License-Identifier: Apache-2.0

// An executor's trace: all of what it did is in the file.

#include <troupe/actors/executor.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.tracing.trace_recording") {

namespace {

executor_options traced(const small_net& net, const std::string& file,
                        trace_level level = trace_level::messages) {
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = net.parameters();
  options.trace.emplace();
  options.trace->file = file;
  options.trace->level = level;
  options.trace->command = "a test";
  options.steps_in_flight = 1; // else the first steps send more messages
  return options;
}

std::map<event_kind, std::size_t> counts(const trace::process_trace& t) {
  std::map<event_kind, std::size_t> found;
  for (auto& e : t.events)
    ++found[e.kind];
  return found;
}

} // namespace

TEST_CASE("a trace has every step, op and message, and the graph") {
  const temporary_folder folder;
  const auto net = make_mlp();
  std::uint64_t messages = 0;
  graph::ssa_graph g;
  {
    executor exe{net.main, traced(net, (folder / "a.trt").string())};
    for (std::uint64_t i = 0; i < 20; ++i)
      exe.run(net.batch(i, 6));
    messages = exe.stats().messages;
    g = exe.graph();
    CHECK_FALSE(exe.trace_failure());
  }
  const auto t = trace::read_trace(folder / "a.trt");
  CHECK(t.is_complete);
  CHECK(t.lost == 0);
  auto found = counts(t);
  CHECK(found[event_kind::step_begin] == 20);
  CHECK(found[event_kind::step_end] == 20);
  CHECK(found[event_kind::run_begin] == 20 * g.ops.size());
  CHECK(found[event_kind::run_end] == 20 * g.ops.size());
  CHECK(found[event_kind::message] == messages);
  CHECK(t.graph.handles.size() == g.size());
  CHECK(t.graph.edges.size() == g.edges.size());
  for (handle_id id = 0; id < g.size(); ++id)
    CHECK(t.name_of(id) == handle_name(g, id));
  CHECK(t.run.command == "a test");
  CHECK(t.run.pid == std::uint64_t(::getpid()));
  std::set<std::string> phases;
  for (auto& p : t.phases) {
    phases.insert(p.name);
    CHECK(p.begin_ns <= p.end_ns);
    if (p.name == "first step")
      CHECK(p.begin_ns >= 0);
    else
      CHECK(p.end_ns <= 0);
  }
  for (const auto* name : {"build graph", "check", "wire actors", "first step"})
    CHECK(phases.contains(name));
  CHECK(t.phases.size() == phases.size()); // one first step
  CHECK(std::ranges::is_sorted(t.events, {}, &trace_event::time));
}

TEST_CASE("a trace knows the name scopes of the program's ops") {
  auto net = make_mlp();
  auto& ops = net.main.blocks[0].ops;
  ops[0].attributes.set("op_namescope", std::string{"/encoder/"});
  ops[1].attributes.set("op_namescope", std::string{"/"}); // none
  executor exe{net.main, {.parameters = net.parameters()}};
  std::set<std::string> scopes;
  for (const auto& h : exe.trace_head().graph.handles)
    if (h.is_op)
      scopes.insert(h.scope);
  CHECK(scopes == std::set<std::string>{"", "/encoder/"});
}

TEST_CASE(
  "all memory that a trace sees come also goes, with sums of gradients") {
  const temporary_folder folder;
  const auto net = make_mlp();
  for (const std::uint32_t accumulate : {1u, 3u}) {
    {
      auto options = traced(net, (folder / "a.trt").string());
      options.accumulate = accumulate;
      executor exe{net.main, options};
      for (std::uint64_t i = 0; i < 12; ++i)
        exe.run(net.batch(i, 6));
    }
    const auto t = trace::read_trace(folder / "a.trt");
    std::map<handle_id, std::int64_t> held;
    for (auto& e : t.events)
      if (e.kind == event_kind::allocation)
        held[e.to] += static_cast<std::int64_t>(e.amount);
      else if (e.kind == event_kind::deallocation && held.contains(e.to))
        held[e.to] -= static_cast<std::int64_t>(e.amount);
    CHECK_FALSE(held.empty());
    for (auto& [id, bytes] : held) {
      CAPTURE(t.name_of(id));
      CHECK(bytes == 0);
    }
  }
}

TEST_CASE("a level below leaves its events out") {
  const temporary_folder folder;
  const auto net = make_mlp();
  for (auto level : {trace_level::steps, trace_level::ops}) {
    {
      executor exe{net.main, traced(net, (folder / "a.trt").string(), level)};
      exe.run(net.batch(0, 6));
      CHECK(exe.trace().level() == level);
    }
    auto found = counts(trace::read_trace(folder / "a.trt"));
    CHECK(found[event_kind::step_end] == 1);
    CHECK((found[event_kind::run_begin] > 0) == (level == trace_level::ops));
    CHECK(found[event_kind::message] == 0);
  }
}

TEST_CASE("the end of a step says whether it failed") {
  const temporary_folder folder;
  const auto net = make_mlp();
  const auto file = (folder / "a.trt").string();
  {
    executor exe{net.main, traced(net, file, trace_level::steps)};
    auto bad = net.batch(0, 6);
    bad["label"].values<std::int64_t>()[0] = 99;
    exe.run(net.batch(0, 6));
    CHECK(caught([&] { exe.run(bad); }).code() == errc::out_of_range);
    exe.run(net.batch(0, 6));
  }
  std::vector<std::uint64_t> failed;
  for (const auto& e : trace::read_trace(file).events)
    if (e.kind == event_kind::step_end)
      failed.push_back(e.amount);
  CHECK(failed == std::vector<std::uint64_t>{0, 1, 0});
}

TEST_CASE("TROUPE_TRACE traces a program that knows nothing of it") {
  const temporary_folder folder;
  const auto net = make_mlp();
  const auto file = (folder / "env.trt").string();
  executor_options options;
  options.parameters = net.parameters();
  ::setenv("TROUPE_TRACE", file.c_str(), 1);
  executor{net.main, options}.run(net.batch(0, 6));
  executor{net.main, options}; // a second one does not replace it
  ::unsetenv("TROUPE_TRACE");
  CHECK(counts(trace::read_trace(file))[event_kind::step_end] == 1);
  ::setenv("TROUPE_TRACE", (folder / "none.trt").c_str(), 1);
  options.trace.emplace(); // the application wants none
  executor{net.main, options}.run(net.batch(0, 6));
  ::unsetenv("TROUPE_TRACE");
  CHECK_FALSE(std::filesystem::exists(folder / "none.trt"));
}

TEST_CASE("a full disk ends the trace and not the training") {
  const auto net = make_mlp();
  // The first write fails: the executor is not made.
  CHECK(says(caught([&] {
               executor{net.main, traced(net, "/dev/full")};
             }),
             "cannot write /dev/full: No space left on device"));
  CHECK(says(caught([&] {
               executor{net.main, traced(net, "/none/a.trt")};
             }),
             "cannot write /none/a.trt"));
  // A later one fails: a file must not grow beyond the limit.
  const temporary_folder folder;
  const auto child = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{256 << 10, 256 << 10};
    ::setrlimit(RLIMIT_FSIZE, &small);
    executor exe{net.main, traced(net, (folder / "a.trt").string())};
    for (std::uint64_t i = 0; i < 3000 && !exe.trace_failure(); ++i)
      exe.run(net.batch(i % 8, 6));
    const auto why = exe.trace_failure();
    exe.run(net.batch(0, 6)); // goes on
    if (!why || why->find("File too large") == why->npos
        || exe.trace().level() != trace_level::steps)
      throw std::runtime_error(why.value_or("the trace goes on"));
  });
  CHECK(exit_code(child) == 0);
  CHECK_FALSE(trace::read_trace(folder / "a.trt").events.empty());
}

TEST_CASE("a process that is killed leaves a trace that can be read") {
  const temporary_folder folder;
  const auto net = make_mlp();
  for (int round = 0; round < 10; ++round) {
    const auto file =
      (folder / ("a" + std::to_string(round) + ".trt")).string();
    const auto child = in_child([&] {
      executor exe{net.main, traced(net, file)};
      for (std::uint64_t i = 0;; ++i)
        exe.run(net.batch(i % 8, 6));
    });
    // Until there is something, and then some more.
    while (!std::filesystem::exists(file)
           || std::filesystem::file_size(file) < 100'000)
      std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds{317 * round});
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto t = trace::read_trace(file);
    CHECK_FALSE(t.is_complete);
    CHECK(counts(t)[event_kind::step_end] > 1);
  }
}

TEST_CASE("each process of a run has a file of its own") {
  CHECK(trace_file_of("a/run.trt", 0) == "a/run.trt");
  CHECK(trace_file_of("a/run.trt", 3) == "a/run.3.trt");
  CHECK(trace_file_of("run", 1) == "run.1");
}

} // TEST_SUITE("actors.tracing.trace_recording")
