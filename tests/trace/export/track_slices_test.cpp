// SPDX-License-Identifier: Apache-2.0
#include "trace/export/hand_made_trace.hpp"

#include <troupe/trace/analysis/memory_use.hpp>
#include <troupe/trace/export/track_slices.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.export.slices") {

namespace {

struct found_slice {
  slice what;
  std::vector<std::uint64_t> received, sent;
};

struct found_slices final : slice_sink {
  std::vector<found_slice> slices;
  std::vector<instant> instants;
  std::vector<memory_sample> memory;

  void take(const slice& s) override {
    slices.push_back({s,
                      {s.received.begin(), s.received.end()},
                      {s.sent.begin(), s.sent.end()}});
  }
  void take(const instant& i) override { instants.push_back(i); }
  void take(const memory_sample& m) override { memory.push_back(m); }

  /// "run worker 0 1000-2000" of each slice of that kind.
  std::vector<std::string> of(slice_kind kind) const {
    std::vector<std::string> all;
    for (auto& s : slices)
      if (s.what.kind == kind)
        all.push_back(
          to_string(s.what.track) + " " + std::to_string(s.what.begin) + "-"
          + std::to_string(s.what.end) + (s.what.is_cut ? " cut" : ""));
    return all;
  }
};

found_slices slices_of(const process_trace& t,
                       with_messages messages = with_messages::yes) {
  found_slices made;
  build_slices({&t, 0, 0}, messages, made);
  return made;
}

using texts = std::vector<std::string>;

/// Messages are on two slices each, and slices of a track are
/// apart or one within the other.
void check_rules(const found_slices& t) {
  std::map<std::pair<track_kind, std::uint32_t>, std::vector<slice>> open;
  std::multiset<std::uint64_t> sent, received;
  for (auto& [s, in, out] : t.slices) {
    CHECK(s.begin < s.end);
    auto& stack = open[{s.track.kind, s.track.number}];
    while (!stack.empty() && stack.back().end <= s.begin)
      stack.pop_back();
    if (!stack.empty()) {
      CHECK(stack.back().begin <= s.begin);
      CHECK(s.end <= stack.back().end);
    }
    stack.push_back(s);
    sent.insert(out.begin(), out.end());
    received.insert(in.begin(), in.end());
  }
  CHECK(sent == received);
  CHECK(std::set<std::uint64_t>(sent.begin(), sent.end()).size()
        == sent.size());
}

} // namespace

TEST_CASE("a step has a slice for each run, help and merge") {
  const auto t = slices_of(one_step());
  CHECK(t.of(slice_kind::run)
        == texts{"worker 0 1000-2000", "worker 1 2500-3000"});
  CHECK(t.of(slice_kind::help) == texts{"worker 1 1200-1800"});
  CHECK(t.of(slice_kind::merge) == texts{"worker 1 2500-2700"});
  CHECK(t.of(slice_kind::step) == texts{"steps 100-3020"});
  REQUIRE(t.instants.size() == 1);
  CHECK(t.instants[0].bytes == 64);
  check_rules(t);
}

TEST_CASE("the message of a variable comes from the run that wrote it") {
  const auto t = slices_of(one_step());
  std::size_t runs = 0;
  for (auto& [s, in, out] : t.slices) {
    if (s.kind == slice_kind::run && s.op == conv) {
      CHECK(out.size() == 1);
      CHECK(in.empty()); // a start has no slice
      CHECK(s.ready == 110);
      CHECK(s.waited_for == no_handle);
      ++runs;
    }
    if (s.kind == slice_kind::run && s.op == update) {
      CHECK(in.size() == 1);
      CHECK(out.empty()); // to a run that the trace does not have
      CHECK(s.ready == 2000);
      CHECK(s.waited_for == image);
      ++runs;
    }
  }
  CHECK(runs == 2);
}

TEST_CASE("without messages there are the same slices") {
  const auto t = one_step();
  CHECK(slices_of(t, with_messages::no).slices.size()
        == slices_of(t).slices.size());
  for (auto& s : slices_of(t, with_messages::no).slices)
    CHECK((s.received.empty() && s.sent.empty() && s.what.ready == 0));
}

TEST_CASE("a run whose end was lost ends where the next one begins") {
  auto t = two_ops();
  event_list e{t};
  e.add(100, event_kind::run_begin, conv).run(300, 400, update);
  const auto made = slices_of(t);
  CHECK(made.of(slice_kind::run)
        == texts{"worker 0 100-300 cut", "worker 0 300-400"});
}

TEST_CASE("an end without begin makes no slice, and the last run ends at the "
          "end of the trace") {
  auto t = two_ops();
  event_list e{t};
  e.add(50, event_kind::run_end, conv).add(60, event_kind::step_end);
  e.add(100, event_kind::run_begin, update);
  e.add(900, event_kind::feed, image);
  const auto made = slices_of(t);
  REQUIRE(made.slices.size() == 1);
  CHECK(made.of(slice_kind::run) == texts{"worker 0 100-900 cut"});
}

TEST_CASE("runs of no duration take a nanosecond and follow each other") {
  auto t = two_ops();
  event_list{t}.run(100, 100, conv).run(100, 100, update);
  const auto made = slices_of(t);
  CHECK(made.of(slice_kind::run)
        == texts{"worker 0 100-101", "worker 0 101-102"});
}

TEST_CASE("what lies within a run is apart, also without duration") {
  auto t = two_ops();
  event_list e{t};
  e.add(100, event_kind::run_begin, conv);
  for (int i = 0; i < 2; ++i)
    e.add(150, event_kind::help_begin, update)
      .add(150, event_kind::help_end, update);
  e.add(150, event_kind::run_end, conv);
  const auto made = slices_of(t);
  CHECK(made.of(slice_kind::help)
        == texts{"worker 0 150-151", "worker 0 151-152"});
  CHECK(made.of(slice_kind::run) == texts{"worker 0 100-152"});
}

TEST_CASE("phases that overlap lie on several tracks") {
  auto t = two_ops();
  t.phases = {{"a", 0, 100}, {"b", 50, 80}, {"c", 100, 120}};
  CHECK(slices_of(t).of(slice_kind::phase)
        == texts{"start-up 0-100", "start-up 100-120", "start-up 2 50-80"});
}

TEST_CASE("overlapping steps, and runs on threads that are no workers, lie on "
          "several tracks") {
  auto t = two_ops();
  event_list e{t};
  e.on(other_thread, 0).add(10, event_kind::step_begin);
  e.on(other_thread, 1).add(20, event_kind::step_begin);
  e.on(other_thread, 0).add(30, event_kind::run_begin, conv);
  e.add(40, event_kind::run_begin, update);
  e.add(50, event_kind::run_end, conv).add(60, event_kind::run_end, update);
  e.add(70, event_kind::step_end);
  e.on(other_thread, 1).add(80, event_kind::step_end);
  const auto made = slices_of(t);
  CHECK(made.of(slice_kind::step) == texts{"steps 10-70", "steps 2 20-80"});
  CHECK(made.of(slice_kind::run)
        == texts{"other threads 30-50", "other threads 2 40-60"});
  check_rules(made);
}

TEST_CASE("a launch that completes later is in flight until then and sends "
          "its messages from there") {
  auto t = two_ops();
  event_list e{t};
  e.run(100, 110, conv);
  e.on(1).add(500, event_kind::completion, conv);
  e.message(500, conv, image).message(500, image, update);
  e.run(600, 700, update);
  const auto made = slices_of(t);
  CHECK(made.of(slice_kind::in_flight) == texts{"in flight 100-500"});
  for (auto& [s, in, out] : made.slices)
    CHECK(out.size() == (s.kind == slice_kind::in_flight ? 1 : 0));
  check_rules(made);
}

TEST_CASE("a merge that ends after its run, on another thread, is in flight") {
  auto t = two_ops();
  event_list e{t};
  e.add(100, event_kind::run_begin, update);
  e.add(100, event_kind::merge_begin, update);
  e.add(110, event_kind::run_end, update);
  e.on(other_thread).add(400, event_kind::merge_end, update);
  const auto made = slices_of(t);
  CHECK(made.of(slice_kind::run) == texts{"worker 0 100-110"});
  CHECK(made.of(slice_kind::merge) == texts{"in flight 100-400"});
}

TEST_CASE("memory never falls below zero, whatever was lost") {
  auto t = two_ops();
  event_list e{t};
  e.add(10, event_kind::deallocation, update, image, 100);
  e.add(20, event_kind::allocation, conv, image, 300);
  e.add(30, event_kind::deallocation, update, image, 200);
  const auto made = slices_of(t);
  REQUIRE(made.memory.size() == 3);
  CHECK(made.memory[0].live_bytes == 0);
  CHECK(made.memory[1].live_bytes == 300);
  CHECK(made.memory[2].live_bytes == 100);
  CHECK(made.memory[2].change == -200);
}

TEST_CASE("memory is highest where a summary finds its peak, feeds included") {
  std::mt19937 random{11};
  for (int round = 0; round < 50; ++round) {
    auto t = two_ops();
    event_list e{t};
    for (std::uint64_t i = 0; i < 60; ++i) {
      const handle_id variable = random() % 3;
      switch (random() % 3) {
      case 0:
        e.add(i, event_kind::feed, variable, no_handle, random() % 90);
        break;
      case 1:
        e.add(i, event_kind::allocation, conv, variable, random() % 90);
        break;
      default:
        e.add(i, event_kind::deallocation, conv, variable, random() % 90);
      }
    }
    std::uint64_t highest = 0;
    for (const auto& m : slices_of(t).memory)
      highest = std::max(highest, m.live_bytes);
    const auto peaks = find_memory_peaks({&t, 1});
    REQUIRE(peaks.size() == 1);
    CHECK(highest == peaks[0].bytes);
  }
}

TEST_CASE("a feed that no op frees is a parameter and does not count") {
  auto t = two_ops();
  event_list{t}.add(10, event_kind::feed, image, no_handle, 64);
  CHECK(slices_of(t).memory.empty());
}

TEST_CASE("handles that the graph lacks are passed over") {
  auto t = two_ops();
  event_list e{t};
  e.run(10, 20, 3).run(30, 40, conv).message(40, conv, 99);
  e.message(40, 99, update).add(50, event_kind::allocation, conv, 77, 1);
  const auto made = slices_of(t);
  CHECK(made.slices.size() == 1);
  CHECK(made.memory.empty());
}

TEST_CASE("an actor has a track with what it handled and who sent it") {
  const auto t = two_actors();
  const auto found = slices_of(t);
  CHECK(found.of(slice_kind::handling)
        == texts{"actor 0 200-600", "actor 1 400-500"});
  CHECK(name_of({track_kind::actor, 1}, t) == "actor reporter#13");
  REQUIRE(found.slices.size() == 2);
  const auto& [fed, in, out] = found.slices[0];
  CHECK(fed.text == "('feed')");
  CHECK(fed.handled.sender == 2);
  CHECK(fed.handled.sent == 100);
  CHECK(fed.handled.result == handling_result::failed);
  CHECK(in.empty()); // main has no track
  CHECK(out.size() == 1);
  const auto& [reported, received, sent] = found.slices[1];
  CHECK(reported.text == "('report', float)");
  CHECK(reported.handled.waiting == 3);
  CHECK(reported.handled.result == handling_result::skipped);
  CHECK(received == out);
  CHECK(sent.empty());
  check_rules(found);
}

TEST_CASE("a message that came before the trace is handled without a sender") {
  auto t = two_actors();
  t.events.erase(t.events.begin());
  const auto found = slices_of(t);
  CHECK_FALSE(found.slices[0].what.handled.sent);
  CHECK(found.slices[0].what.handled.sender == no_actor);
}

TEST_CASE("any events make slices that follow the rules") {
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    auto t = two_actors();
    t.events.clear();
    event_list e{t};
    std::uint64_t time = 0;
    for (int i = 0; i < 120; ++i) {
      const auto worker = static_cast<std::uint16_t>(random() % 3);
      e.on(worker == 2 ? other_thread : worker, random() % 2);
      e.add(time += random() % 3,
            static_cast<event_kind>(random() % event_kinds), random() % 3,
            random() % 4, random() % 100);
    }
    check_rules(slices_of(t));
  }
}

TEST_CASE("ends of parcels lie in the slices of their ops") {
  const auto traces = two_ranks();
  const op_graph graph{traces[0].graph};
  const parcel_list parcels{traces, graph};
  const auto placed = from_origin(traces, parcels.all());
  const auto told = [&](std::size_t rank) {
    found_slices made;
    build_slices(placed[rank], with_messages::yes, made);
    texts all;
    for (const auto& i : made.instants)
      all.push_back(std::to_string(i.parcel) + " " + to_string(i.track) + " "
                    + std::to_string(i.time) + " "
                    + std::string{traces[rank].name_of(i.handle)} + " "
                    + std::string{traces[rank].name_of(i.peer)} + " "
                    + std::to_string(i.bytes));
    return all;
  };
  CHECK(told(0)
        == texts{"1 worker 0 1500 send#0@cpu:0 recv#1@cpu:1 512",
                 "2 worker 0 2100 send#0@cpu:0 recv#1@cpu:1 1024",
                 "3 in flight 4799 all_reduce#2@cpu:0 all_reduce#3@cpu:1 80"});
  CHECK(told(1)
        == texts{"1 in flight 1800 recv#1@cpu:1 send#0@cpu:0 512",
                 "2 worker 0 3000 recv#1@cpu:1 send#0@cpu:0 1024",
                 "3 worker 0 4500 all_reduce#3@cpu:1 all_reduce#2@cpu:0 80"});
}

TEST_CASE("a parcel of which the traces have one end has no number") {
  const auto traces = two_ranks();
  const std::vector<process_trace> one{traces[0]};
  const op_graph graph{one[0].graph};
  const parcel_list parcels{one, graph};
  found_slices made;
  const auto placed = from_origin(one, parcels.all());
  build_slices(placed[0], with_messages::yes, made);
  REQUIRE(made.instants.size() == 2);
  CHECK(made.instants[0].parcel == 0);
  CHECK(made.instants[0].bytes == 512);
}

TEST_CASE("all processes have one origin, the first phase of any") {
  const std::vector<process_trace> traces{one_step(), two_ops()};
  const auto placed = from_origin(traces);
  REQUIRE(placed.size() == 2);
  CHECK(placed[0].offset_ns == 2000);
  CHECK(placed[1].offset_ns == 2000);
  found_slices made;
  build_slices(placed[0], with_messages::no, made);
  CHECK(made.of(slice_kind::phase)
        == texts{"start-up 0-500", "start-up 500-1990"});
}
} // TEST_SUITE("trace.export.slices")
