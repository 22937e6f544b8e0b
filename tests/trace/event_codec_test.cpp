// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/event_codec.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/random.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using test::caught;

TEST_SUITE("trace.event_codec") {

namespace {

bool same(const trace_event& a, const trace_event& b) {
  const auto fields = [](const trace_event& e) {
    return std::tuple{e.time, e.amount, e.from, e.to, e.step, e.worker, e.kind};
  };
  return fields(a) == fields(b);
}

void check_round_trip(const std::vector<trace_event>& events,
                      std::uint64_t first) {
  std::string bytes;
  encode_events(events, first, bytes);
  std::vector<trace_event> back;
  decode_events(bytes, events.size(), first, back);
  REQUIRE(back.size() == events.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    REQUIRE(same(events[i], back[i]));
}

/// Any values at all.
std::vector<trace_event> wild_events(std::uint64_t seed, std::size_t count) {
  splitmix64 draw{seed};
  std::vector<trace_event> events(count);
  for (auto& e : events) {
    e.time = draw() >> draw.below(64);
    e.amount = draw.below(3) == 0 ? 0 : draw() >> draw.below(64);
    e.from = draw.below(5) == 0 ? no_handle : static_cast<handle_id>(draw());
    e.to = draw.below(3) == 0 ? no_handle : static_cast<handle_id>(draw());
    e.step = static_cast<std::uint32_t>(draw() >> draw.below(64));
    e.worker = static_cast<std::uint16_t>(draw() >> draw.below(64));
    e.kind = static_cast<event_kind>(draw.below(event_kinds));
  }
  return events;
}

} // namespace

TEST_CASE("events survive a round trip") {
  check_round_trip({}, 0);
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    check_round_trip(wild_events(seed, 200), seed * 1'000'003);
}

TEST_CASE("extreme values survive a round trip") {
  trace_event e;
  for (auto time : {std::uint64_t{0}, std::uint64_t{1},
                    std::numeric_limits<std::uint64_t>::max()})
    for (auto first :
         {std::uint64_t{0}, time, std::numeric_limits<std::uint64_t>::max()}) {
      e.time = e.amount = time;
      e.from = static_cast<handle_id>(time);
      e.to = ~e.from;
      e.step = static_cast<std::uint32_t>(time);
      e.worker = static_cast<std::uint16_t>(time);
      e.kind = event_kind::message;
      check_round_trip({e, trace_event{}, e}, first);
    }
}

TEST_CASE("an event of a running graph takes some eight bytes") {
  std::vector<trace_event> events;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    trace_event e;
    e.time = 1'000'000 + i * 300ull;
    e.from = i % 500;
    e.to = i % 500 + 512;
    e.step = 7 + i / 500;
    e.worker = 1;
    e.kind = event_kind::message;
    events.push_back(e);
  }
  std::string bytes;
  encode_events(events, 1'000'000, bytes);
  CHECK(bytes.size() < 8 * events.size());
}

TEST_CASE("bytes that are not so many events are refused") {
  const auto events = wild_events(3, 20);
  std::string bytes;
  encode_events(events, 0, bytes);
  std::vector<trace_event> into;
  const auto code = [&](std::string_view text, std::size_t count) {
    into.clear();
    return caught([&] { decode_events(text, count, 0, into); }).code();
  };
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    CHECK(code(std::string_view{bytes}.substr(0, cut), 20) == errc::bad_file);
  CHECK(code(bytes + "x", 20) == errc::bad_file);
  CHECK(code(bytes, 21) == errc::bad_file);
  CHECK(code(bytes, 19) == errc::bad_file);
  CHECK(code(std::string(20, '\x1f'), 1) == errc::bad_file); // kind
  CHECK(code(std::string(20, '\xff'), 1) == errc::bad_file); // number
}

} // TEST_SUITE("trace.event_codec")
