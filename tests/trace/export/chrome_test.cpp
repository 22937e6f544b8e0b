// SPDX-License-Identifier: Apache-2.0
#include "trace/export/hand_made_trace.hpp"

#include <troupe/trace/export/trace_export.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.export.chrome") {

namespace {

using json = nlohmann::json;

json exported(const std::vector<process_trace>& traces) {
  const temporary_folder folder;
  export_trace(traces, export_format::chrome, folder / "t.json");
  return json::parse(read_bytes(folder / "t.json")).at("traceEvents");
}

std::vector<json> of_phase(const json& events, const std::string& phase) {
  std::vector<json> found;
  for (auto& e : events)
    if (e.at("ph") == phase)
      found.push_back(e);
  return found;
}

/// True if a slice of the event's track is around its time.
bool is_in_slice(const json& events, const json& flow) {
  for (auto& s : of_phase(events, "X"))
    if (s["pid"] == flow["pid"] && s["tid"] == flow["tid"]
        && s["ts"] <= flow["ts"]
        && flow["ts"].get<double>()
             < s["ts"].get<double>() + s["dur"].get<double>())
      return true;
  return false;
}

} // namespace

TEST_CASE("a slice has its times in microseconds from the earliest phase on") {
  const auto slices = of_phase(exported({one_step()}), "X");
  REQUIRE(slices.size() == 7);
  std::map<std::string, json> by_category;
  for (auto& s : slices)
    by_category[s.at("cat")] = s;
  const auto& help = by_category.at("help");
  CHECK(help.at("ts") == 3.2);
  CHECK(help.at("dur") == 0.6);
  CHECK(help.at("name") == "conv2d#0@cpu:0");
  CHECK(by_category.at("merge").at("dur") == 0.2);
  CHECK(by_category.at("step").at("name") == "step 0");
  CHECK(by_category.at("phase").at("name") == "build \"graph\"");
  const auto& run = by_category.at("run"); // the last one
  CHECK(run.at("args").at("waited_for") == "a,\"b\":v1@cpu:0");
  CHECK(run.at("args").at("ready_before_us") == 0.5);
}

TEST_CASE("each message begins in a slice and ends in a later one") {
  const auto events = exported({one_step(), of_rank(1, one_step())});
  const auto begins = of_phase(events, "s"), ends = of_phase(events, "f");
  CHECK(begins.size() == 2); // one per process
  REQUIRE(begins.size() == ends.size());
  std::map<json, json> begin_of;
  for (auto& b : begins) {
    CHECK(begin_of.emplace(b.at("id"), b).second);
    CHECK(is_in_slice(events, b));
  }
  for (auto& e : ends) {
    REQUIRE(begin_of.contains(e.at("id")));
    CHECK(begin_of[e["id"]]["ts"] < e["ts"]);
    CHECK(begin_of[e["id"]]["pid"] == e["pid"]);
    CHECK(e.at("bp") == "e");
    CHECK(is_in_slice(events, e));
  }
}

TEST_CASE("a parcel is an arrow from an op of a rank to one of another") {
  const auto events = exported(two_ranks());
  const auto begins = of_phase(events, "s"), ends = of_phase(events, "f");
  REQUIRE(begins.size() == 3);
  REQUIRE(ends.size() == 3);
  for (auto& b : begins) {
    CHECK(b.at("cat") == "parcel");
    CHECK(is_in_slice(events, b));
    const auto e = std::ranges::find_if(
      ends, [&](const json& end) { return end.at("id") == b.at("id"); });
    REQUIRE(e != ends.end());
    CHECK(is_in_slice(events, *e));
    CHECK((*e)["pid"] != b["pid"]);
    CHECK(b["ts"] < (*e)["ts"]);
  }
  const auto instants = of_phase(events, "i");
  REQUIRE(instants.size() == 6);
  CHECK(instants[0].at("name") == "parcel_sent send#0@cpu:0");
  CHECK(instants[0].at("args").at("peer") == "recv#1@cpu:1");
  CHECK(instants[0].at("args").at("bytes") == 512);
}

TEST_CASE("an arrow leads from when an actor sends to when it is handled") {
  const auto events = exported({two_actors()});
  const auto begins = of_phase(events, "s"), ends = of_phase(events, "f");
  REQUIRE(begins.size() == 1);
  REQUIRE(ends.size() == 1);
  CHECK(begins[0].at("id") == ends[0].at("id"));
  CHECK(begins[0].at("ts") == 0.3);
  CHECK(ends[0].at("ts") == 0.4);
  for (const auto& flow : {begins[0], ends[0]})
    CHECK(is_in_slice(events, flow));
  const auto slices = of_phase(events, "X");
  REQUIRE(slices.size() == 2);
  CHECK(slices[0].at("name") == "('feed')");
  CHECK(slices[0].at("cat") == "handling");
  CHECK(slices[0].at("args").at("sender") == "main#4");
  CHECK(slices[0].at("args").at("result") == "failed");
  CHECK(slices[1].at("args").at("mailbox") == 3);
  std::set<std::string> names;
  for (const auto& e : of_phase(events, "M"))
    if (e.at("name") == "thread_name")
      names.insert(e.at("args").at("name"));
  CHECK(names == std::set<std::string>{"actor feeder#12", "actor reporter#13"});
}

TEST_CASE("processes and tracks have names") {
  const auto events = exported({one_step(), of_rank(1, one_step())});
  std::set<std::string> processes, tracks;
  for (auto& e : of_phase(events, "M"))
    if (e.at("name") == "process_name")
      processes.insert(e["args"]["name"]);
    else if (e.at("name") == "thread_name")
      tracks.insert(e["args"]["name"]);
  CHECK(processes
        == std::set<std::string>{"rank 0 (host-a, pid 17)",
                                 "rank 1 (host-a, pid 17)"});
  CHECK(tracks
        == std::set<std::string>{"start-up", "steps", "worker 0", "worker 1",
                                 "other threads"});
}

TEST_CASE("memory is a counter, and a failure is an instant") {
  auto t = one_step();
  event_list{t}.on(1).add(3030, event_kind::failure, update);
  const auto events = exported({t});
  const auto memory = of_phase(events, "C");
  REQUIRE(memory.size() == 3);
  CHECK(memory[0].at("args").at("bytes") == 64);
  CHECK(memory[1].at("args").at("bytes") == 4160);
  CHECK(memory[2].at("args").at("bytes") == 64);
  CHECK(memory[0].at("name") == "memory cpu:0");
  const auto instants = of_phase(events, "i");
  REQUIRE(instants.size() == 2);
  CHECK(instants[0].at("name") == "feed a,\"b\":v1@cpu:0");
  CHECK(instants[1].at("name") == "failure momentum#1@cpu:0");
  CHECK(instants[1].at("s") == "p");
}

TEST_CASE("names that are no UTF-8 still make a file that is JSON") {
  auto t = one_step();
  t.graph.handles[conv].name = "\xff\x01\"\\";
  CHECK(of_phase(exported({t}), "X").size() == 7);
}

TEST_CASE("a trace without events is a file without slices") {
  CHECK(of_phase(exported({two_ops()}), "X").empty());
}
} // TEST_SUITE("trace.export.chrome")
