// SPDX-License-Identifier: Apache-2.0
#include "met_neighbours.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/engine/nearby_signals.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;
using kind = nearby_signals::kind;

TEST_SUITE("comm.engine.nearby_signals") {

namespace {

/// Two processes of a host.
struct pair {
  std::vector<met_neighbour> all = meet_neighbours(2);
  nearby_signals first{*all[0].others}, second{*all[1].others};
};

/// Longer than a thread looks before it falls asleep.
void let_fall_asleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds{2});
}

} // namespace

TEST_CASE("who waits sees what was written before the signal") {
  pair both;
  const auto memory = both.all[0].memory->memory().allocate(8);
  const auto place = both.all[0].others->place_of(memory.data());
  std::jthread other{[&] {
    for (std::uint64_t i = 1; i <= 2000; ++i) {
      both.second.wait(0, kind::places, both.second.next(0, kind::places));
      std::uint64_t seen = 0;
      std::memcpy(&seen, both.all[1].others->at(0, both.second.places_of(0), 8),
                  8);
      CHECK(seen == i);
      both.second.tell(kind::left);
    }
  }};
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    if (i % 500 == 0)
      let_fall_asleep();
    std::memcpy(memory.data(), &i, 8);
    both.first.tell_places(place);
    both.first.wait(1, kind::left, both.first.next(1, kind::left));
  }
}

TEST_CASE("signals of one kind are not taken for those of another") {
  pair both;
  both.first.tell(kind::part);
  both.first.tell(kind::part);
  both.second.wait(0, kind::part, both.second.next(0, kind::part));
  std::jthread other{[&] {
    let_fall_asleep();
    both.first.tell_places(7);
  }};
  both.second.wait(0, kind::places, both.second.next(0, kind::places));
  CHECK(both.second.places_of(0) == 7);
  both.second.wait(0, kind::part, both.second.next(0, kind::part));
}

TEST_CASE("a group that stops ends waits, now and later") {
  pair both;
  for (const bool asleep : {true, false}) {
    std::jthread other{[&] {
      if (asleep)
        let_fall_asleep();
      both.first.stop();
    }};
    const auto e = caught([&] { both.first.wait(1, kind::left, 1); });
    CHECK(e.code() == troupe::errc::peer_failure);
  }
}

} // TEST_SUITE("comm.engine.nearby_signals")
