// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/base/error.hpp>
#include <troupe/trace/analysis/replay.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.replay") {

namespace {

/// Predicted times of all steady steps.
std::vector<double> predicted(const process_trace& t,
                              const std::vector<std::string>& what) {
  const std::vector<process_trace> parts{t};
  const timeline all{parts};
  const op_graph graph{t.graph};
  std::vector<cost_change> changes;
  for (const auto& entry : what)
    changes.push_back(parse_cost_change(entry));
  return replay(all, graph, steps_to_replay(all), changes).predicted_ns;
}

/// Steps of 1000 ns without a gap: on two devices a `conv` of 400 and 600 ns,
/// then an `update` of 390 ns that waits for both, and 10 ns for the end.
process_trace two_devices(std::size_t workers) {
  made_trace t{2, workers};
  const auto c0 = t.op("conv", 0), c1 = t.op("conv", 1), u = t.op("update", 0);
  t.edge(c0, u).edge(c1, u);
  const auto on = [&](std::size_t worker) {
    return static_cast<std::uint16_t>(worker % workers);
  };
  const std::uint64_t step_ns = workers == 1 ? 1400 : 1000;
  for (std::uint32_t s = 0; s < 6; ++s) {
    const auto begin = s * step_ns;
    const auto second = workers == 1 ? begin + 400 : begin;
    t.step(s, begin, begin + step_ns);
    t.run(c0, s, on(0), begin, begin + 400);
    t.run(c1, s, on(1), second, second + 600);
    t.run(u, s, on(0), second + 600, second + 990);
  }
  return t.done();
}

} // namespace

TEST_CASE("equal costs give the measured step times") {
  CHECK(predicted(two_devices(2), {}) == std::vector<double>(4, 1000));
  CHECK(predicted(two_devices(1), {}) == std::vector<double>(4, 1400));
}

TEST_CASE("a factor changes what lies on the path, once per worker") {
  // conv takes 400 on one device and 600 on the other.
  CHECK(predicted(two_devices(2), {"conv=x0.5"})
        == std::vector<double>(4, 300 + 390 + 10));
  CHECK(predicted(two_devices(1), {"conv=x0.5"})
        == std::vector<double>(4, 200 + 300 + 390 + 10));
  CHECK(predicted(two_devices(2), {"*=x2"})
        == std::vector<double>(4, 1200 + 780 + 10));
}

TEST_CASE("times can be added, taken away and fixed") {
  CHECK(predicted(two_devices(2), {"conv=+1us"})
        == std::vector<double>(4, 1600 + 390 + 10));
  CHECK(predicted(two_devices(2), {"conv=-100ns", "update=90ns"})
        == std::vector<double>(4, 500 + 90 + 10));
}

TEST_CASE("a change can mean one op by its name") {
  const auto t = two_devices(1); // so all ops are on the path
  CHECK(predicted(t, {t.graph.handles[0].name + "=x0.5"})
        == std::vector<double>(4, 1200));
  CHECK(predicted(t, {t.graph.handles[1].name + "=x0.5"})
        == std::vector<double>(4, 1100));
  const auto refused = caught([&] { predicted(t, {"conv_0.tmp_0=x2"}); });
  CHECK(refused.code() == errc::not_found);
  CHECK(refused.message()
        == "no op has run whose type or name is 'conv_0.tmp_0'; an op has a "
           "type and a name such as 'conv' and '"
             + t.graph.handles[1].name + "'");
}

TEST_CASE("a change applies to each run, however long it was") {
  made_trace t{1, 1};
  const auto a = t.op("a");
  const std::uint64_t took[] = {100, 100, 100, 100, 100, 900}; // an outlier
  std::uint64_t at = 0;
  for (std::uint32_t s = 0; s < 6; at += took[s++])
    t.step(s, at, at + took[s]).run(a, s, 0, at, at + took[s]);
  CHECK(predicted(t.done(), {"a=10ns"}) == std::vector<double>(4, 10));
  CHECK(predicted(t.done(), {"a=x0.5"})
        == std::vector<double>{50, 50, 50, 450});
  CHECK(predicted(t.done(), {"a=-200ns"}) == std::vector<double>{0, 0, 0, 700});
}

TEST_CASE("a shorter op makes another op the one that the path waits for") {
  made_trace t{2, 2};
  const auto a = t.op("long", 0), b = t.op("short", 1), end = t.op("end", 0);
  t.edge(a, end).edge(b, end);
  for (std::uint32_t s = 0; s < 4; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    t.run(a, s, 0, at, at + 900).run(b, s, 1, at, at + 500);
    t.run(end, s, 0, at + 900, at + 1000);
  }
  CHECK(predicted(t.done(), {"long=10ns"}) == std::vector<double>(2, 600));
}

TEST_CASE("a late begin with an idle worker stays late") {
  // The op is ready at 0 and begins at 50 us: its worker was asleep.
  made_trace t{1, 1};
  const auto a = t.op("a");
  for (std::uint32_t s = 0; s < 4; ++s) {
    const std::uint64_t at = s * 100'000;
    t.step(s, at, at + 60'000).run(a, s, 0, at + 50'000, at + 60'000);
  }
  CHECK(predicted(t.done(), {}) == std::vector<double>(2, 60'000));
  CHECK(predicted(t.done(), {"a=x2"}) == std::vector<double>(2, 70'000));
}

TEST_CASE("steps overlap in a replay as they did") {
  // Step s + 1 begins while step s runs; b of a step waits for nothing but a.
  made_trace t{2, 2};
  const auto a = t.op("a", 0), b = t.op("b", 1);
  t.edge(a, b);
  for (std::uint32_t s = 0; s < 8; ++s) {
    const std::uint64_t at = s * 500;
    t.step(s, at, at + 1000);
    t.run(a, s, 0, at, at + 500).run(b, s, 1, at + 500, at + 1000);
  }
  for (auto ns : predicted(t.done(), {}))
    CHECK(ns == 500);
  // Each worker has one op per step, so the longer one sets the pace.
  CHECK(predicted(t.done(), {"b=x3"}).back() == 1500);
}

TEST_CASE("collectives end when the last rank has come, however late") {
  made_trace t{2, 2};
  t.graph().process_of_device = {0, 1};
  const auto w0 = t.op("work", 0), w1 = t.op("more", 1);
  const auto r0 = t.op("all_reduce", 0, true), r1 = t.op("all_reduce", 1, true);
  t.edge(w0, r0).edge(w1, r1);
  for (std::uint32_t s = 0; s < 4; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    t.run(w0, s, 0, at, at + 300).run(w1, s, 1, at, at + 900);
    t.run(r0, s, 0, at + 300, at + 1000).run(r1, s, 1, at + 900, at + 1000);
  }
  CHECK(predicted(t.done(), {}) == std::vector<double>(2, 1000));
  CHECK(predicted(t.done(), {"more=100ns"}) == std::vector<double>(2, 400));
  CHECK(predicted(t.done(), {"all_reduce=x3"}) == std::vector<double>(2, 1200));
}

TEST_CASE("a collective that waits for an earlier one is not counted twice") {
  made_trace t;
  const auto a = t.op("first", 0, true), b = t.op("second", 0, true);
  t.edge(a, b);
  for (std::uint32_t s = 0; s < 4; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 900).run(a, s, 0, at, at + 10);
    t.run(b, s, 0, at + 10, at + 20);
    t.event(event_kind::completion, at + 600, a, s);
    t.event(event_kind::completion, at + 900, b, s);
  }
  CHECK(predicted(t.done(), {}) == std::vector<double>(2, 900));
  CHECK(predicted(t.done(), {"second=x2"}) == std::vector<double>(2, 1200));
}

TEST_CASE("a trace without runs or whole steps cannot be replayed") {
  made_trace t;
  const auto a = t.op("a");
  t.step(0, 0, 10);
  const auto refusal = [&](std::optional<std::uint32_t> step) {
    const std::vector<process_trace> parts{t.done()};
    const timeline all{parts};
    return caught(
             [&] { step ? steps_to_replay(all, *step) : steps_to_replay(all); })
      .message();
  };
  CHECK(refusal({}).find("--trace-level ops") != std::string::npos);
  t.run(a, 0, 0, 0, 10);
  CHECK(refusal(7) == "the trace has no whole step 7");
}

TEST_CASE("entries that are no change of costs are refused by name") {
  for (const auto* entry :
       {"conv", "=x2", "conv=", "conv=x", "conv=x2y", "conv=5", "conv=5min",
        "conv=x-1", "conv=+", "conv=--5us", "conv=nan", "conv=xinf",
        "conv=x1.1e6", "conv=1e7s", "conv=-1e300ms"}) {
    CAPTURE(entry);
    const auto refused = caught([&] { parse_cost_change(entry); });
    CHECK(refused.code() == errc::invalid_argument);
    CHECK(refused.message().find(entry) != std::string::npos);
  }
  CHECK(caught([] { predicted(two_devices(2), {"mul=x2"}); }).code()
        == errc::not_found);
}

} // TEST_SUITE("trace.replay")
