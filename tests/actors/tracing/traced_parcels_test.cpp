// SPDX-License-Identifier: Apache-2.0

// Traces of two processes have both ends of each value that travels between
// them, and agree about the time.

#include <troupe/actors/executor.hpp>
#include <troupe/trace/analysis/parcels.hpp>
#include <troupe/trace/merge.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.traced_parcels") {

namespace {

constexpr std::uint32_t steps = 4;

/// Runs some steps with an op of device 1 in process 0.
std::vector<trace::process_trace> traces_of_two(const std::string& file,
                                                trace_level level) {
  const auto net = make_mlp();
  process_group run{2, [&](node_options node) -> std::string {
                      auto options =
                        options_over(2, graph::merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      options.nodes = node;
                      options.places = {{"softmax*@cpu:1", 0, "test"}};
                      options.trace.emplace().file = file;
                      options.trace->level = level;
                      executor exe{net.main, options};
                      for (std::uint32_t s = 0; s < steps; ++s)
                        exe.run(exe.own_share(net.batch(s, 6)));
                      return "done";
                    }};
  CHECK(run.wait(0).last_word == "done");
  CHECK(run.wait(1).last_word == "done");
  return {trace::read_trace(file), trace::read_trace(trace_file_of(file, 1))};
}

} // namespace

TEST_CASE("values that travel between processes are in both traces, and a skew "
          "of their clocks is found") {
  const temporary_folder folder;
  auto parts =
    traces_of_two((folder / "t.trt").string(), trace_level::messages);
  constexpr std::int64_t skew = 3'000'000;
  auto before = parts;
  parts[1].run.begin_unix_ns += skew;
  const auto clocks = trace::merge_clocks(parts);
  const auto without = trace::merge_clocks(before);
  REQUIRE(clocks.offsets[1].uncertainty_ns >= 0);
  CHECK(
    std::abs(clocks.offsets[1].offset_ns + skew - without.offsets[1].offset_ns)
    <= 1);
  // A thread that reads both its clocks may be stopped between them.
  const auto unclear = static_cast<std::uint64_t>(clocks.contradiction_ns);
  const trace::op_graph graph{parts[0].graph};
  const trace::parcel_list parcels{parts, graph};
  std::set<std::size_t> senders;
  std::size_t values = 0;
  for (const auto& p : parcels.all()) {
    if (p.kind != trace::parcel_kind::value)
      continue;
    ++values;
    REQUIRE(p.sent);
    // A process can send before the other one has begun its trace.
    if (p.step == 0 && !p.arrived)
      continue;
    REQUIRE(p.is_whole());
    CHECK(p.bytes > 0);
    CHECK(p.sent->time <= p.arrived->time + unclear);
    CHECK(p.sent->trace == graph.process_of(p.sender));
    CHECK(p.arrived->trace == graph.process_of(p.receiver));
    CHECK(p.step < steps);
    senders.insert(p.sent->trace);
  }
  CHECK(senders == std::set<std::size_t>{0, 1}); // there and back
  std::size_t channels = 0;
  for (const auto& h : parts[0].graph.handles)
    channels += h.is_op && h.type == "recv";
  CHECK(values == channels * steps);
}

TEST_CASE("at level steps, traces have no parcels") {
  const temporary_folder folder;
  for (const auto& t :
       traces_of_two((folder / "t.trt").string(), trace_level::steps))
    for (const auto& e : t.events)
      CHECK(level_of(e.kind) == trace_level::steps);
}

} // TEST_SUITE("actors.traced_parcels")
