// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/parcels.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.parcels") {

namespace {

/// Two processes with a channel and a collective.
struct two_traces {
  made_trace first{2}, second{2};
  handle_id send, recv, sum0, sum1;

  two_traces() {
    first.graph().process_of_device = {0, 1};
    send = first.op("send", 0);
    recv = first.op("recv", 1);
    sum0 = first.op("all_reduce", 0, true);
    sum1 = first.op("all_reduce", 1, true);
    first.edge(send, recv);
    second = first;
    second.run_info().process = 1;
  }
  void sent(std::uint64_t time, std::uint32_t step, std::uint64_t bytes) {
    first.event(event_kind::parcel_sent, time, send, step, 0, recv, bytes);
  }
  void arrived(std::uint64_t time, std::uint32_t step, std::uint64_t bytes) {
    second.event(event_kind::parcel_arrived, time, send, step, 0, recv, bytes);
  }
  std::vector<process_trace> parts() const {
    return {first.done(), second.done()};
  }
};

std::vector<parcel> parcels_of(const std::vector<process_trace>& parts) {
  const op_graph graph{parts.front().graph};
  const parcel_list list{parts, graph};
  return {list.all().begin(), list.all().end()};
}

} // namespace

TEST_CASE_FIXTURE(two_traces, "both ends of a parcel are found by channel and "
                              "step") {
  sent(100, 0, 64);
  sent(200, 1, 65);
  arrived(150, 0, 64);
  arrived(290, 1, 65);
  const auto found = parcels_of(parts());
  REQUIRE(found.size() == 2);
  for (std::uint32_t step : {0u, 1u}) {
    const auto& p = found[step];
    CHECK(p.kind == parcel_kind::value);
    CHECK(p.sender == send);
    CHECK(p.receiver == recv);
    CHECK(p.step == step);
    CHECK(p.bytes == 64 + step);
    REQUIRE(p.is_whole());
    CHECK(p.sent->trace == 0);
    CHECK(p.arrived->trace == 1);
    CHECK(p.sent->event == step);
    CHECK(p.travel_ns() == (step == 0 ? 50 : 90));
  }
}

TEST_CASE_FIXTURE(two_traces, "a parcel of which one end is missing is not "
                              "whole") {
  sent(100, 0, 64);
  arrived(150, 1, 64);
  const auto found = parcels_of(parts());
  REQUIRE(found.size() == 2);
  CHECK(found[0].sent);
  CHECK_FALSE(found[0].arrived);
  CHECK(found[1].arrived);
  CHECK_FALSE(found[1].sent);
}

TEST_CASE_FIXTURE(two_traces, "ranks of a collective wait for the rank that "
                              "begins last") {
  first.event(event_kind::merge_begin, 1000, sum0, 0, 0, no_handle, 12)
    .run(sum0, 0, 0, 1000, 1010)
    .event(event_kind::completion, 5000, sum0, 0);
  second.event(event_kind::merge_begin, 4000, sum1, 0, 0, no_handle, 16)
    .run(sum1, 0, 0, 4000, 4900);
  const auto found = parcels_of(parts());
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == parcel_kind::collective);
  CHECK(found[0].sender == sum1);
  CHECK(found[0].receiver == sum0);
  CHECK(found[0].bytes == 16);
  REQUIRE(found[0].is_whole());
  CHECK(found[0].sent->time == 4000);
  CHECK(found[0].arrived->time == 5000);
}

TEST_CASE_FIXTURE(two_traces, "a call that has not ended, or of which a rank "
                              "is missing, is no parcel") {
  first.event(event_kind::run_begin, 1000, sum0, 0);
  second.run(sum1, 0, 0, 4000, 4900);
  first.run(sum0, 1, 0, 9000, 9100);
  CHECK(parcels_of(parts()).empty());
}

TEST_CASE_FIXTURE(two_traces, "ids that the graph lacks are left out") {
  first.event(event_kind::parcel_sent, 1, send, 0, 0, 99, 1);
  first.event(event_kind::parcel_sent, 1, 99, 0, 0, recv, 1);
  second.event(event_kind::parcel_arrived, 1, send, 0);
  CHECK(parcels_of(parts()).empty());
}

} // TEST_SUITE("trace.parcels")
