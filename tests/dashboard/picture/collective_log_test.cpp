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

} // TEST_SUITE("dashboard.collective_log")
