// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/event_ring.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

using namespace troupe;

TEST_SUITE("base.event_ring") {

namespace {

/// Event number `n`: all words say so.
trace_event numbered(std::uint64_t n) {
  return {.time = n,
          .amount = n,
          .from = static_cast<handle_id>(n),
          .to = static_cast<handle_id>(n),
          .step = static_cast<std::uint32_t>(n)};
}

bool is_whole(const trace_event& e) {
  return e.amount == e.time && e.from == static_cast<handle_id>(e.time)
         && e.to == e.from && e.step == static_cast<std::uint32_t>(e.time);
}

} // namespace

TEST_CASE("a ring gives events once, oldest first") {
  event_ring ring{8};
  std::vector<trace_event> taken;
  std::uint64_t next = 0;
  for (std::uint64_t n = 0; n < 3; ++n)
    ring.write(numbered(n));
  CHECK(ring.read(next, taken) == 0);
  CHECK(ring.read(next, taken) == 0);
  for (std::uint64_t n = 3; n < 5; ++n)
    ring.write(numbered(n));
  CHECK(ring.read(next, taken) == 0);
  REQUIRE(taken.size() == 5);
  for (std::uint64_t n = 0; n < 5; ++n)
    CHECK(taken[n].time == n);
}

TEST_CASE("a ring gives back every bit of every field") {
  event_ring ring{8};
  const trace_event written[] = {
    {~std::uint64_t{0}, 0, ~handle_id{0}, 0, ~std::uint32_t{0}, 0,
     event_kind{0xff}},
    {0, ~std::uint64_t{0}, 0, ~handle_id{0}, 0, UINT16_MAX, event_kind{0}},
    {0x0123456789abcdef, 0xfedcba9876543210, 0x89abcdef, 0x76543210, 0x13579bdf,
     0x8642, event_kind::message}};
  for (const auto& e : written)
    ring.write(e);
  std::vector<trace_event> taken;
  std::uint64_t next = 0;
  CHECK(ring.read(next, taken) == 0);
  REQUIRE(taken.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(taken[i].time == written[i].time);
    CHECK(taken[i].amount == written[i].amount);
    CHECK(taken[i].from == written[i].from);
    CHECK(taken[i].to == written[i].to);
    CHECK(taken[i].step == written[i].step);
    CHECK(taken[i].worker == written[i].worker);
    CHECK(taken[i].kind == written[i].kind);
  }
}

TEST_CASE("a full ring loses its oldest events and says how many") {
  event_ring ring{8};
  std::vector<trace_event> taken;
  std::uint64_t next = 0;
  for (std::uint64_t n = 0; n < 20; ++n)
    ring.write(numbered(n));
  const auto lost = ring.read(next, taken);
  CHECK(lost + taken.size() == 20);
  REQUIRE(taken.size() >= 7); // the place that is written next is not read
  CHECK(taken.back().time == 19);
  CHECK(taken.front().time == lost);
}

TEST_CASE("each reader of a ring has its own position") {
  event_ring ring{8};
  std::vector<trace_event> first, second;
  std::uint64_t next_of_first = 0, next_of_second = 0;
  ring.write(numbered(0));
  CHECK(ring.read(next_of_first, first) == 0);
  for (std::uint64_t n = 1; n < 10; ++n)
    ring.write(numbered(n));
  const auto lost = ring.read(next_of_second, second);
  CHECK(lost + second.size() == 10);
  CHECK(ring.read(next_of_first, first) + first.size() == 10);
  CHECK(next_of_first == 10);
  CHECK(next_of_second == 10);
}

TEST_CASE("a ring takes memory only for what is written") {
  constexpr std::size_t capacity = std::size_t{1} << 22; // 128 MiB
  const auto resident_pages = [] {
    std::ifstream statm{"/proc/self/statm"};
    long all = 0, resident = 0;
    statm >> all >> resident;
    return resident;
  };
  const auto before = resident_pages();
  event_ring ring{capacity};
  for (std::uint64_t n = 0; n < 100; ++n)
    ring.write(numbered(n));
  std::vector<trace_event> taken;
  std::uint64_t next = 0;
  CHECK(ring.read(next, taken) == 0);
  CHECK(taken.size() == 100);
  // A sixteenth of the ring, so that other memory does not matter.
  CHECK(resident_pages() - before
        < static_cast<long>(capacity * sizeof(trace_event) / 16 / 4096));
}

TEST_CASE("readers beside the writer get whole events or count them lost") {
  constexpr std::uint64_t events = 200'000;
  event_ring ring{64};
  std::atomic<bool> over{false};
  struct outcome {
    std::uint64_t lost = 0, got = 0;
    bool whole = true, in_order = true;
  };
  const auto read_all = [&](outcome& out) {
    std::uint64_t position = 0;
    std::uint64_t expected = 0;
    std::vector<trace_event> taken;
    for (bool last = false; !last;) {
      last = over;
      taken.clear();
      out.lost += ring.read(position, taken);
      out.got += taken.size();
      for (auto& e : taken) {
        out.whole &= is_whole(e);
        out.in_order &= e.time >= expected;
        expected = e.time + 1;
      }
    }
  };
  outcome here, there;
  std::thread other([&] { read_all(there); });
  std::thread writer([&] {
    for (std::uint64_t n = 0; n < events; ++n)
      ring.write(numbered(n));
    over = true;
  });
  read_all(here);
  writer.join();
  other.join();
  for (const auto& out : {here, there}) {
    CHECK(out.whole);
    CHECK(out.in_order);
    CHECK(out.got + out.lost == events);
  }
}

} // TEST_SUITE("base.event_ring")
