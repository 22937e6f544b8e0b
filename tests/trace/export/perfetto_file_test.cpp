// SPDX-License-Identifier: Apache-2.0
// perfetto_test.py decodes such files with classes that others have written.
#include "trace/export/hand_made_trace.hpp"

#include <troupe/trace/export/trace_export.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <perfetto_trace.pb.h>

#include <map>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("trace.export.perfetto") {

namespace {

perfetto::Trace exported(const std::vector<trace::process_trace>& traces) {
  const temporary_folder folder;
  export_trace(traces, trace::export_format::perfetto, folder / "t.pftrace");
  perfetto::Trace read;
  REQUIRE(read.ParseFromString(read_bytes(folder / "t.pftrace")));
  return read;
}

using texts = std::vector<std::string>;

/// The begins and ends of a track, by its name, with names and times.
texts events_of(const perfetto::Trace& t, const std::string& track) {
  std::uint64_t uuid = 0;
  std::map<std::uint64_t, std::string> names;
  texts found;
  for (auto& p : t.packet()) {
    if (p.track_descriptor().name() == track)
      uuid = p.track_descriptor().uuid();
    for (auto& n : p.interned_data().event_names())
      names[n.iid()] = n.name();
    const auto& e = p.track_event();
    if (!p.has_track_event() || e.track_uuid() != uuid)
      continue;
    auto text = std::to_string(p.timestamp());
    if (e.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN)
      text += " begin " + names.at(e.name_iid());
    else if (e.type() == perfetto::TrackEvent::TYPE_SLICE_END)
      text += " end";
    else if (e.type() == perfetto::TrackEvent::TYPE_COUNTER)
      text += " value " + std::to_string(e.counter_value());
    else
      text += " " + names.at(e.name_iid());
    found.push_back(text);
  }
  return found;
}

} // namespace

TEST_CASE("a track's slices are nested, and names are written once") {
  const auto t = exported({one_step()});
  CHECK(events_of(t, "worker 1")
        == texts{"3200 begin conv2d#0@cpu:0", "3800 end",
                 "4500 begin momentum#1@cpu:0", "4500 begin momentum#1@cpu:0",
                 "4700 end", "5000 end"});
  CHECK(events_of(t, "steps") == texts{"2100 begin step 0", "5020 end"});
  CHECK(events_of(t, "memory cpu:0")
        == texts{"2050 value 64", "4000 value 4160", "5010 value 64"});
  CHECK(events_of(t, "other threads") == texts{"2050 feed a,\"b\":v1@cpu:0"});
  CHECK(events_of(t, "start-up").size() == 4);
  std::map<std::string, int> written;
  for (auto& p : t.packet())
    for (auto& n : p.interned_data().event_names())
      ++written[n.name()];
  for (auto& [name, times] : written)
    CHECK(times == 1);
}

TEST_CASE("each message has one begin and one end") {
  const auto t = exported({one_step(), of_rank(1, one_step())});
  std::map<std::uint64_t, int> begins, ends;
  for (auto& p : t.packet()) {
    for (auto id : p.track_event().flow_ids())
      ++begins[id];
    for (auto id : p.track_event().terminating_flow_ids())
      ++ends[id];
  }
  CHECK(begins.size() == 2); // one of each process
  CHECK(begins == ends);
  for (auto& [id, times] : begins) {
    CHECK(id != 0);
    CHECK(times == 1);
  }
}

TEST_CASE("a parcel is a flow from an event of a rank to one of another") {
  const auto t = exported(two_ranks());
  std::map<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>> begins, ends;
  for (auto& p : t.packet()) {
    const std::pair at{p.trusted_packet_sequence_id(), p.timestamp()};
    for (auto id : p.track_event().flow_ids())
      begins[id] = at;
    for (auto id : p.track_event().terminating_flow_ids())
      ends[id] = at;
  }
  REQUIRE(begins.size() == 3);
  REQUIRE(ends.size() == 3);
  for (auto& [id, begin] : begins) {
    REQUIRE(ends.contains(id));
    CHECK(ends[id].first != begin.first);  // of another process
    CHECK(ends[id].second > begin.second); // later
  }
  CHECK(events_of(t, "in flight").size() > 0);
}

TEST_CASE("an actor of the application has a track with what it handled") {
  const auto t = exported({two_actors()});
  CHECK(events_of(t, "actor feeder#12")
        == texts{"200 begin ('feed')", "600 end"});
  CHECK(events_of(t, "actor reporter#13")
        == texts{"400 begin ('report', float)", "500 end"});
  std::uint64_t sent = 0, received = 0;
  for (auto& p : t.packet()) {
    for (auto id : p.track_event().flow_ids())
      sent = id;
    for (auto id : p.track_event().terminating_flow_ids())
      received = id;
  }
  CHECK(sent != 0);
  CHECK(sent == received);
}

TEST_CASE("each process is a sequence of its own that begins with its state") {
  const auto t = exported({one_step(), of_rank(1, one_step())});
  std::map<std::uint32_t, int> cleared;
  for (auto& p : t.packet()) {
    if (p.sequence_flags() == 1)
      ++cleared[p.trusted_packet_sequence_id()];
    CHECK(cleared[p.trusted_packet_sequence_id()] == 1);
  }
  CHECK(cleared.size() == 2);
}
} // TEST_SUITE("trace.export.perfetto")
