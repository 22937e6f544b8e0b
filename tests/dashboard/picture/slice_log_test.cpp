// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/slice_log.hpp>

#include <trace/export/hand_made_trace.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;

TEST_SUITE("dashboard.slice_log") {

namespace {

slice_log log_of(const trace::process_trace& t, std::size_t kept = 100) {
  slice_log log{kept, t.graph.handles.size()};
  for (const auto& e : t.events)
    log.add(e);
  return log;
}

} // namespace

TEST_CASE("a run of an op is a slice of its worker") {
  auto t = two_ops();
  event_list{t}.on(1, 3).run(10, 25, conv);
  const auto log = log_of(t);
  REQUIRE(log.slices().size() == 1);
  const auto& s = log.slices()[0];
  CHECK(s.begin == 10);
  CHECK(s.end == 25);
  CHECK(s.op == conv);
  CHECK(s.worker == 1);
  CHECK(s.step == 3);
  CHECK(s.kind == slice_kind::run);
}

TEST_CASE("help, merges and launches are slices of their own") {
  auto t = two_ops();
  event_list{t}
    .run(10, 20, conv)
    .add(50, event_kind::completion, conv)
    .on(1)
    .add(12, event_kind::help_begin, conv)
    .add(18, event_kind::help_end, conv)
    .add(60, event_kind::merge_begin, update)
    .add(70, event_kind::merge_end, update);
  const auto log = log_of(t);
  REQUIRE(log.slices().size() == 4);
  CHECK(log.slices()[1].kind == slice_kind::pending);
  CHECK(log.slices()[1].begin == 20);
  CHECK(log.slices()[1].end == 50);
  CHECK(log.slices()[2].kind == slice_kind::help);
  CHECK(log.slices()[3].kind == slice_kind::merge);
}

TEST_CASE("a parcel is a slice without length of the op of the other rank") {
  const auto traces = two_ranks();
  const auto parcels_in = [](const slice_log& log) {
    std::vector<slice> found;
    for (const auto& s : log.slices())
      if (s.kind == slice_kind::parcel)
        found.push_back(s);
    return found;
  };
  const auto sent = parcels_in(log_of(traces[0]));
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].op == recv_op);
  CHECK(sent[0].begin == 1500);
  CHECK(sent[0].end == 1500);
  const auto arrived = parcels_in(log_of(traces[1]));
  REQUIRE(arrived.size() == 2);
  CHECK(arrived[1].op == send_op);
  CHECK(arrived[1].begin == 2500);
  CHECK(arrived[1].step == 1);
}

TEST_CASE("an op within an op is a slice, and the worker is busy once") {
  auto t = two_ops();
  event_list{t}
    .add(10, event_kind::run_begin, conv)
    .run(12, 18, update)
    .add(30, event_kind::run_end, conv);
  auto log = log_of(t);
  CHECK(log.slices().size() == 2);
  CHECK(log.busy_ns(0, 40) == 20);
  CHECK(log.busy_ns(0, 400) == 20);
}

TEST_CASE("a worker is busy up to now with the op that runs") {
  auto t = two_ops();
  event_list{t}.add(10, event_kind::run_begin, conv);
  auto log = log_of(t);
  CHECK(log.running_on(0) == conv);
  CHECK(log.running_on(1) == no_handle);
  CHECK(log.busy_ns(0, 50) == 40);
  CHECK(log.busy_ns(0, 55) == 45);
}

TEST_CASE("when nobody looks any more, a worker is busy until then") {
  auto t = two_ops();
  event_list{t}.add(10, event_kind::run_begin, conv);
  auto log = log_of(t);
  log.forget_open(40);
  CHECK(log.running_on(0) == no_handle);
  CHECK(log.busy_ns(0, 1000) == 30);
  trace::process_trace later = two_ops();
  event_list{later}
    .add(2000, event_kind::run_end, conv) // nobody saw it begin
    .run(3000, 3050, conv);
  for (const auto& e : later.events)
    log.add(e);
  CHECK(log.busy_ns(0, 4000) == 80);
  CHECK(log.slices().size() == 1);
}

TEST_CASE("ends without a begin are left out") {
  auto t = two_ops();
  event_list{t}
    .add(10, event_kind::run_end, conv)
    .add(20, event_kind::completion, conv)
    .add(30, event_kind::merge_end, update)
    .add(40, event_kind::help_end, conv)
    .on(0, 1)
    .run(50, 60, conv)
    .on(0, 0)
    .add(70, event_kind::completion, conv); // of another step
  CHECK(log_of(t).slices().size() == 1);
}

TEST_CASE("only the newest slices are kept, and all are counted") {
  auto t = two_ops();
  for (std::uint64_t i = 0; i < 10; ++i)
    event_list{t}.run(10 * i, 10 * i + 5, conv);
  const auto log = log_of(t, 4);
  CHECK(log.slices().size() == 4);
  CHECK(log.slices().front().begin == 60);
  CHECK(log.total() == 10);
}

TEST_CASE("the time of an op is that of all of its runs") {
  auto t = two_ops();
  const auto unknown = static_cast<handle_id>(t.graph.handles.size());
  event_list{t}.run(10, 25, conv).run(30, 40, conv).run(50, 60, unknown);
  const auto log = log_of(t, 1);
  CHECK(log.op_ns(conv) == 25);
  CHECK(log.op_ns(update) == 0);
  CHECK(log.op_ns(unknown) == 0);
}

} // TEST_SUITE("dashboard.slice_log")
