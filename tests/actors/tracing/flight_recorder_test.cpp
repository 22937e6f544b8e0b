// SPDX-License-Identifier: Apache-2.0

// What an executor has recorded can be written at any time.

#include <troupe/actors/executor.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.tracing.flight_recorder") {

namespace {

executor_options options_for(const small_net& net) {
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = net.parameters();
  return options;
}

std::map<event_kind, std::size_t> counts(const trace::process_trace& t) {
  std::map<event_kind, std::size_t> found;
  for (auto& e : t.events)
    ++found[e.kind];
  return found;
}

} // namespace

TEST_CASE(
  "an executor records steps that can be dumped without asking for it") {
  const temporary_folder folder;
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  CHECK(exe.trace().level() == trace_level::steps);
  for (std::uint64_t i = 0; i < 20; ++i)
    exe.run(net.batch(i, 6));
  const std::filesystem::path file = folder / "a.trt";
  CHECK(exe.dump_trace(file) == file);
  const auto t = trace::read_trace(file);
  CHECK(t.is_complete);
  CHECK(t.lost == 0);
  CHECK(t.run.level == trace_level::steps);
  CHECK(t.run.pid == std::uint64_t(::getpid()));
  CHECK(t.graph.handles.size() == exe.graph().size());
  CHECK(t.graph.edges.size() == exe.graph().edges.size());
  CHECK_FALSE(t.phases.empty());
  auto found = counts(t);
  CHECK(found[event_kind::step_begin] == 20);
  CHECK(found[event_kind::step_end] == 20);
  CHECK(found[event_kind::run_begin] == 0);
  CHECK(t.events.front().time > 0); // since the executor was made
  CHECK(std::ranges::is_sorted(t.events, {}, &trace_event::time));
  exe.dump_trace(file); // is replaced
  CHECK(counts(trace::read_trace(file))[event_kind::step_end] == 20);
}

TEST_CASE("a flight recorder that is off records nothing") {
  const temporary_folder folder;
  const auto net = make_mlp();
  auto options = options_for(net);
  options.flight_recorder.level = trace_level::off;
  executor exe{net.main, options};
  exe.run(net.batch(0, 6));
  CHECK(exe.trace().level() == trace_level::off);
  exe.dump_trace(folder / "a.trt");
  CHECK(trace::read_trace(folder / "a.trt").events.empty());
}

TEST_CASE("dumps without a name replace nothing") {
  const temporary_folder folder;
  const auto net = make_mlp();
  auto options = options_for(net);
  options.flight_recorder.file = folder / "a.trt";
  executor exe{net.main, options};
  write_bytes(folder / "a-2.trt", "mine");
  CHECK(exe.dump_trace() == std::filesystem::path{folder / "a-1.trt"});
  CHECK(exe.dump_trace() == std::filesystem::path{folder / "a-3.trt"});
  CHECK(read_bytes(folder / "a-2.trt") == "mine");
  // A link that leads nowhere is somebody's, too.
  std::filesystem::create_symlink(folder / "elsewhere", folder / "a-4.trt");
  CHECK(exe.dump_trace() == std::filesystem::path{folder / "a-5.trt"});
  CHECK_FALSE(std::filesystem::exists(folder / "elsewhere"));
}

TEST_CASE("the usual name of a dump has the number of the process") {
  const temporary_folder folder;
  const auto net = make_mlp();
  const auto child = in_child([&] {
    std::filesystem::current_path(folder.path());
    executor exe{net.main, options_for(net)};
    const auto name = "troupe-" + std::to_string(::getpid()) + "-1.trt";
    if (exe.dump_trace() != name || !std::filesystem::exists(name))
      throw std::runtime_error("no " + name);
  });
  CHECK(exit_code(child) == 0);
}

TEST_CASE("a dump that cannot be written says why, and steps go on") {
  const auto net = make_mlp();
  executor exe{net.main, options_for(net)};
  exe.run(net.batch(0, 6));
  CHECK(says(caught([&] { exe.dump_trace("/dev/full"); }),
             "cannot write /dev/full: No space left on device"));
  CHECK(says(caught([&] { exe.dump_trace("/none/a.trt"); }),
             "cannot write /none/a.trt"));
  exe.run(net.batch(0, 6));
}

TEST_CASE("dumps of several threads while steps run hold whole steps") {
  const temporary_folder folder;
  const auto net = make_mlp();
  auto options = options_for(net);
  options.flight_recorder.level = trace_level::ops;
  options.steps_in_flight = 1;
  executor exe{net.main, options};
  std::atomic<bool> is_over{false};
  const auto dump = [&](const std::string& file) {
    do
      exe.dump_trace(file);
    while (!is_over);
  };
  std::thread first([&] { dump(folder / "a.trt"); });
  std::thread second([&] { dump(folder / "b.trt"); });
  constexpr std::uint64_t steps = 200;
  for (std::uint64_t i = 0; i < steps; ++i)
    exe.run(net.batch(i % 8, 6));
  is_over = true;
  first.join();
  second.join();
  exe.dump_trace(folder / "c.trt");
  const auto t = trace::read_trace(folder / "c.trt");
  CHECK(counts(t)[event_kind::run_end] == steps * exe.graph().ops.size());
  CHECK(trace::read_trace(folder / "a.trt").is_complete);
  CHECK(trace::read_trace(folder / "b.trt").is_complete);
}

TEST_CASE("a trace can begin and end while steps run") {
  const temporary_folder folder;
  const auto net = make_mlp();
  auto options = options_for(net);
  options.steps_in_flight = 1;
  executor exe{net.main, options};
  exe.run(net.batch(0, 6));
  trace_options wanted;
  wanted.file = folder / "a.trt";
  wanted.level = trace_level::ops;
  CHECK_FALSE(exe.stop_trace());
  for (int round = 0; round < 2; ++round) {
    CHECK(exe.start_trace(wanted) == std::filesystem::path{wanted.file});
    CHECK(exe.trace().level() == trace_level::ops);
    CHECK(says(caught([&] { exe.start_trace(wanted); }),
               "a trace is being written to " + wanted.file));
    for (std::uint64_t i = 0; i < 5; ++i)
      exe.run(net.batch(i, 6));
    CHECK(exe.stop_trace() == std::filesystem::path{wanted.file});
    CHECK(exe.trace().level() == trace_level::steps);
    exe.run(net.batch(0, 6));
    const auto t = trace::read_trace(wanted.file);
    CHECK(t.is_complete);
    CHECK(t.run.level == trace_level::ops);
    CHECK(counts(t)[event_kind::step_end] == 5);
    CHECK(counts(t)[event_kind::run_end] == 5 * exe.graph().ops.size());
    CHECK(t.graph.edges.size() == exe.graph().edges.size());
  }
}

} // TEST_SUITE("actors.tracing.flight_recorder")
