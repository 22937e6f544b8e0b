// SPDX-License-Identifier: Apache-2.0
//
// Writes a trace of a made-up run with many events, on which the commands of
// `troupe trace` are measured:
//   make_trace big.trt --events 10000000
//   /usr/bin/time -v troupe trace summary big.trt
#include <troupe/trace/trace_writer.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::trace;

namespace {

constexpr std::size_t devices = 8;
constexpr std::size_t ops_per_device = 250;
constexpr std::uint64_t op_ns = 1000;
constexpr std::size_t events_per_block = 50'000;

/// On each device a chain of ops, each of which writes a variable that the next
/// one and the one after that read.
graph_info made_graph() {
  graph_info g;
  for (std::size_t d = 0; d < devices; ++d)
    g.devices.push_back("cpu:" + std::to_string(d));
  constexpr auto ops = devices * ops_per_device;
  for (std::size_t i = 0; i < 2 * ops; ++i) {
    const auto of_op = i % ops;
    handle_info h;
    h.is_op = i < ops;
    h.type = h.is_op ? "op_" + std::to_string(of_op % 20)
                     : "value_" + std::to_string(of_op);
    h.device = static_cast<std::uint32_t>(of_op / ops_per_device);
    h.name = h.type + "#" + std::to_string(i) + "@" + g.devices[h.device];
    h.stream = h.is_op ? "compute" : "";
    g.handles.push_back(h);
  }
  for (handle_id op = 0; op < ops; ++op) {
    const auto var = static_cast<handle_id>(op + ops);
    g.edges.push_back({op, var, 0});
    for (std::size_t next = 1; next <= 2; ++next)
      if (op % ops_per_device + next < ops_per_device)
        g.edges.push_back({var, static_cast<handle_id>(op + next), 0});
  }
  return g;
}

/// Appends the events of one step, in order.
void add_step(const graph_info& g, std::uint32_t step, std::uint64_t begin,
              std::vector<trace_event>& into) {
  const auto ops = static_cast<handle_id>(g.handles.size() / 2);
  const auto add = [&](event_kind kind, std::uint64_t time, handle_id from,
                       handle_id to, std::size_t worker, std::uint64_t amount) {
    into.push_back(
      {time, amount, from, to, step, static_cast<std::uint16_t>(worker), kind});
  };
  add(event_kind::step_begin, begin, no_handle, no_handle, 0, 0);
  for (std::size_t i = 0; i < ops_per_device; ++i) {
    const auto at = begin + 100 + i * op_ns;
    for (std::size_t d = 0; d < devices; ++d) {
      const auto op = static_cast<handle_id>(d * ops_per_device + i);
      add(event_kind::run_begin, at + d, op, no_handle, d, 0);
    }
    for (std::size_t d = 0; d < devices; ++d) {
      const auto op = static_cast<handle_id>(d * ops_per_device + i);
      const handle_id var = op + ops;
      const auto end = at + op_ns - 100 + d;
      add(event_kind::allocation, end, op, var, d, 4096);
      add(event_kind::run_end, end, op, no_handle, d, 0);
      add(event_kind::message, end, op, var, d, 0);
      for (handle_id next = 1; next <= 2; ++next)
        if (i + next < ops_per_device)
          add(event_kind::message, end, var, op + next, d, 0);
      if (i >= 2)
        add(event_kind::deallocation, end, op, var - 2, d, 4096);
    }
  }
  add(event_kind::step_end, begin + 200 + ops_per_device * op_ns, no_handle,
      no_handle, 0, 0);
}

void write_trace(const std::string& path, std::size_t events) {
  trace_writer file{path};
  run_info run;
  run.command = "make_trace";
  run.workers = devices;
  file.write(run);
  const auto g = made_graph();
  file.write(g);
  // A tick is a nanosecond here.
  const std::uint64_t step_ns = 300 + ops_per_device * op_ns;
  std::uint64_t begin = 0, block_begin = 0;
  std::vector<trace_event> block;
  for (std::uint32_t step = 0; events > 0; ++step, begin += step_ns) {
    add_step(g, step, begin, block);
    if (block.size() > events)
      block.resize(events);
    if (block.size() < events_per_block && block.size() < events)
      continue;
    const auto end = begin + step_ns;
    file.write(block, 0, {block_begin, block_begin}, {end, end}, 0);
    events -= block.size();
    block_begin = end;
    block.clear();
  }
  file.close();
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Writes a trace of a made-up run with many events"};
  std::string path;
  std::size_t events = 10'000'000;
  app.add_option("F.trt", path, "the file")->required();
  app.add_option("--events", events, "how many");
  CLI11_PARSE(app, argc, argv);
  try {
    write_trace(path, events);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "make_trace: %s\n", failure.what());
    return 1;
  }
}
