// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// A trace that is written by hand. Times are in nanoseconds.
class made_trace {
public:
  explicit made_trace(std::size_t devices = 1, std::size_t workers = 1) {
    for (std::size_t d = 0; d < devices; ++d)
      trace_.graph.devices.push_back("cpu:" + std::to_string(d));
    trace_.run.workers = workers;
  }

  /// Adds an op named "mul@0" if its type is "mul" and its device 0.
  handle_id op(const std::string& type, std::uint32_t device = 0,
               bool is_collective = false) {
    trace::handle_info h;
    h.name = type + "@" + std::to_string(device);
    h.type = type;
    h.is_op = true;
    h.is_collective = is_collective;
    h.device = device;
    h.stream = is_collective ? "collective" : "compute";
    return add(std::move(h));
  }
  handle_id var(const std::string& name, std::uint32_t device = 0) {
    trace::handle_info h;
    h.name = h.type = name;
    h.device = device;
    return add(std::move(h));
  }
  made_trace& edge(handle_id from, handle_id to, std::uint32_t distance = 0) {
    trace_.graph.edges.push_back({from, to, distance});
    return *this;
  }

  made_trace& event(event_kind kind, std::uint64_t time, handle_id from,
                    std::uint32_t step, std::uint16_t worker = 0,
                    handle_id to = no_handle, std::uint64_t amount = 0) {
    trace_.events.push_back({time, amount, from, to, step, worker, kind});
    return *this;
  }
  made_trace& run(handle_id op, std::uint32_t step, std::uint16_t worker,
                  std::uint64_t begin, std::uint64_t end) {
    event(event_kind::run_begin, begin, op, step, worker);
    return event(event_kind::run_end, end, op, step, worker);
  }
  made_trace& step(std::uint32_t step, std::uint64_t begin, std::uint64_t end,
                   bool has_failed = false) {
    event(event_kind::step_begin, begin, no_handle, step);
    return event(event_kind::step_end, end, no_handle, step, 0, no_handle,
                 has_failed ? 1 : 0);
  }

  trace::run_info& run_info() { return trace_.run; }
  trace::graph_info& graph() { return trace_.graph; }
  /// The trace with its events in order.
  trace::process_trace done() const {
    auto made = trace_;
    std::ranges::stable_sort(made.events, {}, &trace_event::time);
    return made;
  }

private:
  handle_id add(trace::handle_info h) {
    trace_.graph.handles.push_back(std::move(h));
    return static_cast<handle_id>(trace_.graph.handles.size() - 1);
  }

  trace::process_trace trace_;
};

/// Two ranks of some steps, in each of which an op "work" and a collective take
/// some ms.
inline std::vector<trace::process_trace>
unequal_ranks(std::uint64_t ms_of_0, std::uint64_t ms_of_1,
              std::uint32_t steps = 12) {
  const std::uint64_t ms = 1'000'000;
  made_trace t{2, 1};
  t.graph().process_of_device = {0, 1};
  const handle_id work[] = {t.op("work", 0), t.op("work", 1)};
  const handle_id merge[] = {t.op("all_reduce", 0, true),
                             t.op("all_reduce", 1, true)};
  std::vector<trace::process_trace> parts;
  for (std::uint32_t i : {0u, 1u}) {
    auto of = t;
    of.run_info().process = i;
    for (std::uint32_t s = 0; s < steps; ++s) {
      const auto ns = (i == 0 ? ms_of_0 : ms_of_1) * ms + s % 4 * 1000;
      const auto at = s * 20 * ms;
      of.step(s, at, at + 19 * ms)
        .run(work[i], s, 0, at, at + ns)
        .run(merge[i], s, 0, at + ns, at + 19 * ms);
    }
    parts.push_back(of.done());
  }
  return parts;
}

} // namespace troupe::test
