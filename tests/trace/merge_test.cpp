// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/base/error.hpp>
#include <troupe/trace/analysis/parcels.hpp>
#include <troupe/trace/merge.hpp>
#include <troupe/trace/trace_reader.hpp>
#include <troupe/trace/trace_writer.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.merge") {

namespace {

/// Both processes of a run with a collective per step, which takes 40 us from
/// the begin of the last rank. The second process's clock is `skew` ahead.
class two_processes {
public:
  explicit two_processes(std::int64_t skew, unsigned steps = 20) {
    std::mt19937 random{7};
    std::uniform_int_distribution<std::uint64_t> late{0, 500'000};
    made_trace t{2, 1};
    t.graph().process_of_device = {0, 1};
    const auto r0 = t.op("all_reduce", 0, true);
    const auto r1 = t.op("all_reduce", 1, true);
    const auto send = t.op("send", 0), recv = t.op("recv", 1);
    t.edge(send, recv);
    auto first = t, second = t;
    first.run_info().processes = second.run_info().processes = 2;
    first.run_info().begin_unix_ns = begin;
    second.run_info().process = 1;
    second.run_info().begin_unix_ns = begin + 2'000'000 + skew;
    for (std::uint32_t s = 0; s < steps; ++s) {
      const auto at = 5'000'000 + s * std::uint64_t{1'000'000};
      const auto a = at + late(random), b = at + late(random);
      const auto done = std::max(a, b) + 40'000;
      first.run(r0, s, 0, a, a + 100)
        .event(event_kind::completion, done, r0, s)
        .run(send, s, 0, done + 1000, done + 2000);
      second.run(r1, s, 0, b - 2'000'000, done - 2'000'000)
        .run(recv, s, 0, done - 1'999'500, done - 1'990'000);
    }
    parts_ = {first.done(), second.done()};
  }
  std::vector<process_trace> parts() const { return parts_; }

  static constexpr std::int64_t begin = 1'700'000'000'000'000'000;

private:
  std::vector<process_trace> parts_;
};

std::uint64_t time_of(const process_trace& t, event_kind kind, handle_id op,
                      std::uint32_t step) {
  for (const auto& e : t.events)
    if (e.kind == kind && e.from == op && e.step == step)
      return e.time;
  FAIL("no such event");
  return 0;
}

/// Two processes that send each other a value per step, and nothing else. It is
/// on its way for 30 to 45 us; the ops around it take much longer.
std::vector<process_trace> two_correspondents(std::int64_t skew) {
  std::mt19937 random{11};
  std::uniform_int_distribution<std::uint64_t> way{30'000, 45'000};
  made_trace t{2, 1};
  t.graph().process_of_device = {0, 1};
  const handle_id send[] = {t.op("send", 0), t.op("send", 1)};
  const handle_id recv[] = {t.op("recv", 1), t.op("recv", 0)};
  for (int i : {0, 1})
    t.edge(send[i], recv[i]);
  made_trace of[] = {t, t};
  for (int i : {0, 1}) {
    of[i].run_info().processes = 2;
    of[i].run_info().process = static_cast<std::size_t>(i);
  }
  of[0].run_info().begin_unix_ns = two_processes::begin;
  of[1].run_info().begin_unix_ns = two_processes::begin + 2'000'000 + skew;
  const std::uint64_t began[] = {0, 2'000'000}; // by the first one's clock
  for (std::uint32_t s = 0; s < 20; ++s)
    for (int i : {0, 1}) {
      const auto at = 5'000'000 + s * std::uint64_t{2'000'000}
                      + static_cast<std::uint64_t>(i) * 1'000'000;
      const auto arrives = at + way(random);
      const auto there = arrives - began[1 - i];
      of[i]
        .run(send[i], s, 0, at - began[i] - 400'000, at - began[i] + 10'000)
        .event(event_kind::parcel_sent, at - began[i], send[i], s, 0, recv[i],
               4096);
      of[1 - i]
        .event(event_kind::parcel_arrived, there, send[i], s, 0, recv[i], 4096)
        .run(recv[i], s, 0, there - 300'000, there + 400'000);
    }
  return {of[0].done(), of[1].done()};
}

/// The trace, after it was in a file.
process_trace through_file(const process_trace& t, const temporary_folder& in) {
  const auto path = in / "t.trt";
  trace_writer file{path};
  file.write(t.run);
  file.write(t.graph);
  file.write(t.events, 0, {0, 0}, {1'000'000'000, 1'000'000'000}, 0);
  file.close();
  return read_trace(path);
}

} // namespace

TEST_CASE("parcels alone tell a skew within 50 us, also from files") {
  const temporary_folder folder;
  for (const std::int64_t skew : {3'000'000, -3'000'000}) {
    CAPTURE(skew);
    std::vector<process_trace> parts;
    for (const auto& t : two_correspondents(skew))
      parts.push_back(through_file(t, folder));
    const auto found = merge_clocks(parts);
    CHECK(found.contradiction_ns == 0);
    CHECK(found.constraints == 40 + 40); // of ops, and of parcels
    CHECK(found.offsets[1].uncertainty_ns <= 50'000);
    CHECK(std::abs(found.offsets[1].offset_ns + skew)
          <= found.offsets[1].uncertainty_ns);
    const op_graph graph{parts[0].graph};
    const parcel_list parcels{parts, graph};
    REQUIRE(parcels.all().size() == 40);
    for (const auto& p : parcels.all()) {
      REQUIRE(p.is_whole());
      CHECK(p.sent->time <= p.arrived->time);
    }
  }
}

TEST_CASE("without parcels, the ops around them tell less") {
  auto parts = two_correspondents(3'000'000);
  for (auto& t : parts)
    std::erase_if(t.events, [](const trace_event& e) {
      return e.kind >= event_kind::parcel_sent;
    });
  const auto found = merge_clocks(parts);
  CHECK(found.constraints == 40);
  CHECK(found.offsets[1].uncertainty_ns > 400'000);
}

TEST_CASE("a skew of some milliseconds is found within its uncertainty") {
  for (const std::int64_t skew : {0, 3'000'000, -3'000'000, 1'234'567}) {
    CAPTURE(skew);
    auto parts = two_processes{skew}.parts();
    const auto found = merge_clocks(parts);
    CHECK(found.contradiction_ns == 0);
    CHECK(found.constraints == 3 * 20);
    CHECK(found.offsets[0].offset_ns == 0);
    CHECK(found.offsets[1].uncertainty_ns <= 50'000);
    CHECK(std::abs(found.offsets[1].offset_ns + skew) <= 50'000);
    CHECK(std::abs(found.offsets[1].offset_ns + skew)
          <= found.offsets[1].uncertainty_ns);
  }
}

TEST_CASE("after merging, nothing arrives before it was sent") {
  auto parts = two_processes{3'000'000}.parts();
  merge_clocks(parts);
  CHECK(parts[0].run.begin_unix_ns == parts[1].run.begin_unix_ns);
  for (std::uint32_t s = 0; s < 20; ++s) {
    const auto done0 = time_of(parts[0], event_kind::completion, 0, s);
    const auto done1 = time_of(parts[1], event_kind::run_end, 1, s);
    CHECK(done0 >= time_of(parts[1], event_kind::run_begin, 1, s));
    CHECK(done1 >= time_of(parts[0], event_kind::run_begin, 0, s));
    CHECK(time_of(parts[1], event_kind::run_end, 3, s)
          >= time_of(parts[0], event_kind::run_begin, 2, s));
  }
}

TEST_CASE("files may come in any order") {
  auto parts = two_processes{3'000'000}.parts();
  std::swap(parts[0], parts[1]);
  const auto found = merge_clocks(parts);
  CHECK(parts[0].run.process == 0);
  CHECK(std::abs(found.offsets[1].offset_ns + 3'000'000) <= 50'000);
}

TEST_CASE("without calls of others, the hosts' clocks are believed") {
  auto parts = two_processes{3'000'000, 0}.parts();
  const auto found = merge_clocks(parts);
  CHECK(found.constraints == 0);
  CHECK(found.offsets[1].offset_ns == 0);
  CHECK(found.offsets[1].uncertainty_ns == -1);
}

TEST_CASE("processes of a host that did not run at the same time are of two "
          "runs") {
  const auto merged = [](const std::string& other_host, std::int64_t later) {
    auto parts = two_processes{later}.parts();
    parts[0].file = "a.trt";
    parts[1].file = "b.1.trt";
    parts[0].run.host = "host-a";
    parts[1].run.host = other_host;
    std::swap(parts[0], parts[1]); // the files may come in any order
    merge_clocks(parts);
  };
  const std::int64_t run_ns = 200'000'000;
  for (const auto later : {run_ns, -run_ns}) {
    const auto refused = caught([&] { merged("host-a", later); });
    CHECK(refused.code() == errc::invalid_argument);
    CHECK(contains(refused.message(),
                   "a.trt, b.1.trt: the traces are not of one run: one ends "
                   "before the other begins"));
    CHECK_NOTHROW(merged("host-b", later)); // has a clock of its own
  }
  CHECK_NOTHROW(merged("host-a", 60'000'000)); // a moment
  CHECK_NOTHROW(merged("host-a", -60'000'000));
}

TEST_CASE("processes of two jobs are of two runs, wherever they ran") {
  const auto merged = [](const std::string& job, const std::string& other) {
    auto parts = two_processes{0}.parts();
    parts[0].file = "a.trt";
    parts[1].file = "b.1.trt";
    parts[0].run.host = "host-a";
    parts[1].run.host = "host-b";
    parts[0].run.job = job;
    parts[1].run.job = other;
    merge_clocks(parts);
  };
  const auto refused = caught([&] { merged("1", "2"); });
  CHECK(refused.code() == errc::invalid_argument);
  CHECK(contains(
    refused.message(),
    "a.trt, b.1.trt: the traces are not of one run: they are of two jobs"));
  CHECK_NOTHROW(merged("1", "1"));
  CHECK_NOTHROW(merged("1", "")); // of an earlier build
}

TEST_CASE("clocks that drift are told") {
  auto parts = two_processes{0}.parts();
  // In the second half of the steps, the second clock is 5 ms ahead.
  for (auto& e : parts[1].events)
    if (e.step >= 10)
      e.time += 5'000'000;
  const auto found = merge_clocks(parts);
  CHECK(found.contradiction_ns > 4'000'000);
  CHECK(found.offsets[1].uncertainty_ns == -1); // nobody knows
}

TEST_CASE("calls of failed steps do not tell clocks: nobody waits in them") {
  const std::uint64_t at = 30'000'000;
  for (const bool is_marked : {true, false}) { // or a failure tells it
    auto parts = two_processes{0}.parts();
    auto& events = parts[0].events;
    auto& others = parts[1].events;
    // Rank 0 skips its collective 15 ms before rank 1 begins it.
    const auto add = [](auto& to, event_kind kind, std::uint64_t time,
                        handle_id from, std::uint64_t amount = 0) {
      to.push_back({time, amount, from, no_handle, 20, 0, kind});
    };
    add(events, event_kind::step_begin, at, no_handle);
    add(events, event_kind::run_begin, at + 100, 0);
    add(events, event_kind::run_end, at + 200, 0);
    add(events, event_kind::completion, at + 300, 0);
    add(events, event_kind::step_end, at + 400, no_handle, is_marked ? 1 : 0);
    add(others, event_kind::run_begin, at + 13'000'000, 1);
    add(others, event_kind::run_end, at + 13'000'100, 1);
    if (!is_marked)
      add(others, event_kind::failure, at + 13'000'200, 1);
    const auto found = merge_clocks(parts);
    CHECK(found.contradiction_ns == 0);
    CHECK(found.constraints == 3 * 20);
  }
}

TEST_CASE("a call without its end does not tell clocks") {
  const std::uint64_t at = 30'000'000;
  for (const bool is_merging : {false, true}) {
    auto parts = two_processes{0}.parts();
    auto& events = parts[0].events;
    // The launch is over, and the trace ends before the call does.
    events.push_back({at + 100, 0, 0, no_handle, 20, 0, event_kind::run_begin});
    if (is_merging)
      events.push_back(
        {at + 150, 0, 0, no_handle, 20, 0, event_kind::merge_begin});
    events.push_back({at + 200, 0, 0, no_handle, 20, 0, event_kind::run_end});
    if (is_merging)
      events.push_back(
        {at + 250, 0, 0, no_handle, 20, 0, event_kind::completion});
    parts[1].events.push_back(
      {at + 13'000'000, 0, 1, no_handle, 20, 0, event_kind::run_begin});
    CHECK(merge_clocks(parts).contradiction_ns == 0);
  }
}

TEST_CASE("a step without its end does not tell clocks") {
  auto parts = two_processes{0}.parts();
  parts[0].events.push_back(
    {1, 0, no_handle, no_handle, 19, 0, event_kind::step_begin});
  CHECK(merge_clocks(parts).constraints == 3 * 19);
}

TEST_CASE(
  "one trace is left as it is, and traces of different runs are refused") {
  const auto both = two_processes{0}.parts();
  std::vector<process_trace> one{both[1]};
  merge_clocks(one);
  CHECK(one[0].events.front().time == both[1].events.front().time);
  std::vector<process_trace> twice{both[1], both[1]};
  CHECK(caught([&] { merge_clocks(twice); }).message().find("process 1")
        != std::string::npos);
  auto other = both;
  other[1].graph.handles[0].name = "mul";
  CHECK(caught([&] { merge_clocks(other); }).code() == errc::invalid_argument);
  CHECK(other[1].events.front().time == both[1].events.front().time);
}

} // TEST_SUITE("trace.merge")
