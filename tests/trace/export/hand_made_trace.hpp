// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <string>
#include <vector>

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

/// Appends events of the application's actors.
class actor_list {
public:
  explicit actor_list(trace::process_trace& into) : into_(into) {}

  actor_list& mail(std::uint64_t ns, actor_number from, actor_number to,
                   std::uint32_t message, std::uint32_t type = 0) {
    return add(ns, event_kind::mail, from, to, 0, {message, type});
  }
  actor_list& begin(std::uint64_t ns, actor_number who, std::uint32_t message,
                    std::uint32_t waiting, std::uint32_t type = 0) {
    return add(ns, event_kind::handling_begin, who, no_actor, waiting,
               {message, type});
  }
  actor_list& end(std::uint64_t ns, actor_number who,
                  handling_result result = handling_result::handled) {
    return add(ns, event_kind::handling_end, who, no_actor,
               static_cast<std::uint32_t>(result), {});
  }

private:
  actor_list& add(std::uint64_t ns, event_kind kind, actor_number from,
                  actor_number to, std::uint32_t step, mail_id id) {
    into_.events.push_back(
      {ns, id.amount(), from, to, step, other_thread, kind});
    return *this;
  }

  trace::process_trace& into_;
};

/// What a feeder and a reporter of an application did: the feeder sent the
/// reporter "('report', float)" while it handled "('feed')" of main, and then
/// failed.
inline trace::process_trace two_actors() {
  auto t = two_ops();
  t.actors = {{.name = "feeder",
               .id = 12,
               .is_recorded = true,
               .end_ns = 700,
               .has_failed = true,
               .reason = "no more data"},
              {.name = "reporter", .id = 13, .is_recorded = true},
              {.name = "main", .id = 4}};
  t.message_types = {"('feed')", "('report', float)"};
  actor_list{t}
    .mail(100, 2, 0, 1, 0)
    .begin(200, 0, 1, 0, 0)
    .mail(300, 0, 1, 2, 1)
    .begin(400, 1, 2, 3, 1)
    .end(500, 1, handling_result::skipped)
    .end(600, 0, handling_result::failed);
  return t;
}

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

// Handles of `two_ranks`.
inline constexpr handle_id send_op = 0, recv_op = 1, sum_of_0 = 2, sum_of_1 = 3;

/// Two ranks on one clock. Of step 0, a value comes while its `recv` is in
/// flight; of step 1, before its `recv` runs. Then rank 1 comes to a collective
/// after rank 0. What they have seen of each other allows offsets of their
/// clocks from -300 to 300 ns.
inline std::vector<trace::process_trace> two_ranks() {
  trace::process_trace t;
  t.run.workers = 1;
  t.run.processes = 2;
  t.run.level = trace_level::ops;
  t.graph.devices = {"cpu:0", "cpu:1"};
  t.graph.process_of_device = {0, 1};
  t.graph.handles = {
    {"send#0@cpu:0", "send", true, false, 0, "compute", ""},
    {"recv#1@cpu:1", "recv", true, false, 1, "compute", ""},
    {"all_reduce#2@cpu:0", "all_reduce", true, true, 0, "collective", ""},
    {"all_reduce#3@cpu:1", "all_reduce", true, true, 1, "collective", ""}};
  t.graph.edges = {{send_op, recv_op, 0}};
  t.is_complete = true;
  auto other = of_rank(1, t);
  event_list{t}
    .on(0, 0)
    .add(1400, event_kind::run_begin, send_op)
    .add(1500, event_kind::parcel_sent, send_op, recv_op, 512)
    .add(1600, event_kind::run_end, send_op)
    .on(0, 1)
    .add(2000, event_kind::run_begin, send_op)
    .add(2100, event_kind::parcel_sent, send_op, recv_op, 1024)
    .add(2200, event_kind::run_end, send_op)
    .add(4000, event_kind::run_begin, sum_of_0)
    .add(4000, event_kind::merge_begin, sum_of_0, no_handle, 96)
    .add(4100, event_kind::run_end, sum_of_0)
    .on(other_thread, 1)
    .add(4800, event_kind::completion, sum_of_0);
  event_list{other}
    .on(0, 0)
    .run(1200, 1250, recv_op)
    .on(other_thread, 0)
    .add(1800, event_kind::parcel_arrived, send_op, recv_op, 512)
    .add(1900, event_kind::completion, recv_op)
    .on(other_thread, 1)
    .add(2500, event_kind::parcel_arrived, send_op, recv_op, 1024)
    .on(0, 1)
    .run(3000, 3100, recv_op)
    .add(4500, event_kind::run_begin, sum_of_1)
    .add(4500, event_kind::merge_begin, sum_of_1, no_handle, 80)
    .add(4800, event_kind::run_end, sum_of_1);
  return {t, other};
}

} // namespace troupe::test
