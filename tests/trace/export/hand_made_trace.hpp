// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <string>

namespace troupe::test {

// Handles of `two_ops`.
inline constexpr handle_id conv = 0, image = 1, update = 2;
inline constexpr std::uint16_t other_thread = recorder::no_worker;

/// A process whose graph is conv2d -> image -> momentum -> conv2d of the next
/// step, without events. Its names need escaping.
inline trace::process_trace two_ops() {
  trace::process_trace t;
  t.run.version = "0.1.0";
  t.run.command = "train \"net\" <a&b>";
  t.run.host = "host-a";
  t.run.pid = 17;
  t.run.workers = 2;
  t.run.level = trace_level::messages;
  t.run.begin_unix_ns = 1'000'000'000;
  t.graph.devices = {"cpu:0"};
  t.graph.handles = {
    {"conv2d#0@cpu:0", "conv2d", true, false, 0, "compute", "[-1, 3]; [4, 3]"},
    {"a,\"b\":v1@cpu:0", "a,\"b\"", false, false, 0, "", "[-1, 4]"},
    {"momentum#1@cpu:0", "momentum", true, true, 0, "collective", ""}};
  t.graph.edges = {{conv, image, 0}, {image, update, 0}, {update, conv, 1}};
  t.is_complete = true;
  return t;
}

/// The trace as that of another rank of the same run.
inline trace::process_trace of_rank(std::size_t rank, trace::process_trace t) {
  t.run.process = rank;
  return t;
}

/// Appends events to a trace, in the order of their times.
class event_list {
public:
  explicit event_list(trace::process_trace& into) : into_(into) {}

  /// The worker and the step of the following events.
  event_list& on(std::uint16_t worker, std::uint32_t step = 0) {
    worker_ = worker;
    step_ = step;
    return *this;
  }
  event_list& add(std::uint64_t ns, event_kind kind, handle_id from = no_handle,
                  handle_id to = no_handle, std::uint64_t amount = 0) {
    trace_event e;
    e.time = ns;
    e.kind = kind;
    e.from = from;
    e.to = to;
    e.amount = amount;
    e.step = step_;
    e.worker = worker_;
    into_.events.push_back(e);
    return *this;
  }
  event_list& run(std::uint64_t begin, std::uint64_t end, handle_id op) {
    return add(begin, event_kind::run_begin, op)
      .add(end, event_kind::run_end, op);
  }
  event_list& message(std::uint64_t ns, handle_id from, handle_id to) {
    return add(ns, event_kind::message, from, to);
  }

private:
  trace::process_trace& into_;
  std::uint16_t worker_ = 0;
  std::uint32_t step_ = 0;
};

/// A step: conv2d on worker 0 and, waiting for it, momentum with a merge on
/// worker 1. Helps, memory, a feed and start-up are in it.
inline trace::process_trace one_step() {
  auto t = two_ops();
  t.phases = {{"read program", -2000, -1500}, {"build \"graph\"", -1500, -10}};
  event_list e{t};
  e.on(other_thread).add(50, event_kind::feed, image, no_handle, 64);
  e.add(100, event_kind::step_begin);
  e.on(0).message(110, no_handle, conv);
  e.add(1000, event_kind::run_begin, conv);
  e.on(1).add(1200, event_kind::help_begin, conv);
  e.add(1800, event_kind::help_end, conv);
  e.on(0).add(2000, event_kind::allocation, conv, image, 4096);
  e.add(2000, event_kind::run_end, conv);
  e.message(2000, conv, image).message(2000, image, update);
  e.on(1).add(2500, event_kind::run_begin, update);
  e.add(2500, event_kind::merge_begin, update);
  e.add(2700, event_kind::merge_end, update);
  e.add(3000, event_kind::run_end, update);
  e.on(1, 1).message(3000, update, conv);
  e.on(1).add(3010, event_kind::deallocation, update, image, 4096);
  e.add(3020, event_kind::step_end);
  return t;
}

} // namespace troupe::test
