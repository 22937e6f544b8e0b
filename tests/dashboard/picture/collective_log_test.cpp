// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/collective_log.hpp>

#include <trace/export/hand_made_trace.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;

TEST_SUITE("dashboard.collective_log") {

namespace {

constexpr handle_id sum = 2, a = 0, b = 1;

/// A sum over the values of two devices.
trace::process_trace two_devices() {
  trace::process_trace t;
  t.graph.devices = {"cpu:0", "cpu:1"};
  t.graph.handles = {
    {"a@cpu:0", "a", false, false, 0, "", ""},
    {"b@cpu:1", "b", false, false, 1, "", ""},
    {"all_reduce", "all_reduce", true, true, 0, "collective", ""}};
  t.graph.edges = {{a, sum, 0}, {b, sum, 0}};
  return t;
}

// Handles of `merging_update`.
constexpr handle_id merging = 4, w = 0, b0 = 1, b1 = 2, a1 = 3;

/// An update that merges the gradients of two devices: two of device 1.
trace::process_trace merging_update() {
  trace::process_trace t;
  t.graph.devices = {"cpu:0", "cpu:1"};
  t.graph.handles = {
    {"w:v0@cpu:0", "w", false, false, 0, "", ""},
    {"b@GRAD:v1@cpu:0", "b@GRAD", false, false, 0, "", ""},
    {"b@GRAD:v1@cpu:1", "b@GRAD", false, false, 1, "", ""},
    {"a@GRAD:v1@cpu:1", "a@GRAD", false, false, 1, "", ""},
    {"merging_sgd#4@cpu:0", "merging_sgd", true, false, 0, "compute", ""},
    {"sgd#5@cpu:0", "sgd", true, false, 0, "compute", ""}};
  t.graph.edges = {{w, merging, 0},
                   {b0, merging, 0},
                   {b1, merging, 0},
                   {a1, merging, 0},
                   {b0, merging + 1, 0}};
  return t;
}

collective_log log_of(const trace::process_trace& t) {
  collective_log log{t.graph};
  for (const auto& e : t.events)
    log.add(e);
  return log;
}

} // namespace

TEST_CASE("a collective expects the devices whose values it merges") {
  const auto log = log_of(two_devices());
  CHECK(log.calls().at(sum).expected == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("who has arrived is known while others are missing") {
  auto t = two_devices();
  event_list{t}.add(100, event_kind::arrival, sum, b, 1);
  const auto call = log_of(t).calls().at(sum);
  CHECK(call.arrived == std::vector<std::uint32_t>{1});
  CHECK(call.first_ns == 100);
  CHECK_FALSE(call.is_over);
}

TEST_CASE("a call takes from the first arrival to its end") {
  auto t = two_devices();
  event_list{t}
    .add(100, event_kind::arrival, sum, a, 0)
    .add(130, event_kind::arrival, sum, b, 1)
    .add(150, event_kind::merge_end, sum)
    .on(0, 1)
    .add(200, event_kind::arrival, sum, a, 0);
  const auto call = log_of(t).calls().at(sum);
  CHECK(call.calls == 1);
  CHECK(call.last_ns == 50);
  CHECK(call.step == 1);
  CHECK(call.arrived == std::vector<std::uint32_t>{0});
  CHECK_FALSE(call.is_over);
}

TEST_CASE("an end without an arrival counts nothing") {
  auto t = two_devices();
  event_list{t}.add(150, event_kind::merge_end, sum);
  CHECK(log_of(t).calls().at(sum).calls == 0);
}

TEST_CASE("an update that merges gradients of devices counts as a collective") {
  const auto log = log_of(merging_update());
  REQUIRE(log.calls().size() == 1);
  const auto& call = log.calls().at(merging);
  CHECK(call.expected == std::vector<std::uint32_t>{0, 1});
  CHECK(call.values.size() == 3); // without the parameter
}

TEST_CASE("a device has arrived at an update with all of its gradients") {
  auto t = merging_update();
  event_list events{t};
  events.on(0, 7).message(90, w, merging).message(100, b1, merging);
  CHECK(log_of(t).calls().at(merging).arrived.empty());
  events.message(120, a1, merging);
  const auto call = log_of(t).calls().at(merging);
  CHECK(call.arrived == std::vector<std::uint32_t>{1});
  CHECK(call.step == 7);
  CHECK(call.first_ns == 120);
  events.message(150, b0, merging).run(160, 200, merging);
  const auto after = log_of(t).calls().at(merging);
  CHECK(after.arrived == std::vector<std::uint32_t>{1, 0});
  CHECK(after.is_over);
  CHECK(after.calls == 1);
  CHECK(after.last_ns == 80);
  // Half of what device 1 sends in the next step.
  events.on(0, 8).message(300, a1, merging);
  CHECK(log_of(t).calls().at(merging).step == 7);
}

TEST_CASE("without messages, all have arrived at an update that begins") {
  auto t = merging_update();
  event_list{t}.add(160, event_kind::run_begin, merging);
  const auto call = log_of(t).calls().at(merging);
  CHECK(call.arrived == std::vector<std::uint32_t>{0, 1});
  CHECK(call.first_ns == 160);
  CHECK_FALSE(call.is_over);
}

TEST_CASE("of a call whose end nobody sees nothing is kept") {
  auto t = two_devices();
  event_list{t}.add(100, event_kind::arrival, sum, b, 1);
  auto log = log_of(t);
  log.forget_open();
  CHECK(log.calls().at(sum).arrived.empty());
}

} // TEST_SUITE("dashboard.collective_log")
