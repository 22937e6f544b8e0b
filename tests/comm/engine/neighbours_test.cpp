// SPDX-License-Identifier: Apache-2.0
#include "met_neighbours.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/engine/neighbours.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.engine.neighbours") {

TEST_CASE("a process reads what another one has written at a place") {
  auto all = meet_neighbours(3);
  for (std::size_t p = 0; p < 3; ++p) {
    CHECK(all[p].others->self() == p);
    CHECK(all[p].others->count() == 3);
    const auto memory = all[p].memory->memory().allocate(100);
    std::memset(memory.data(), int(p) + 1, 100);
    REQUIRE(all[p].others->is_shared(memory.data(), 100));
    const auto place = all[p].others->place_of(memory.data());
    for (auto& other : all)
      CHECK(int(other.others->at(p, place, 100)[99]) == int(p) + 1);
  }
}

TEST_CASE("memory of other kinds is not shared") {
  const auto all = meet_neighbours(2);
  const std::vector<std::byte> elsewhere(8);
  CHECK_FALSE(all[0].others->is_shared(elsewhere.data(), 8));
}

TEST_CASE("a place that is not in the memory of the process is refused") {
  const auto all = meet_neighbours(2);
  const auto size = all[1].memory->segment().size();
  CHECK_NOTHROW(all[0].others->at(1, size - 8, 8));
  for (const auto& [place, bytes] :
       std::vector<std::pair<std::size_t, std::size_t>>{{size - 8, 9},
                                                        {size + 1, 0},
                                                        {~std::size_t{0}, 8},
                                                        {8, ~std::size_t{0}}}) {
    const auto e = caught([&] { all[0].others->at(1, place, bytes); });
    CHECK(e.code() == troupe::errc::peer_failure);
    CHECK(says(e, "process 1 of this host has no such memory"));
  }
}

TEST_CASE("others see that a process has broken off, itself does not care") {
  const auto all = meet_neighbours(3);
  for (auto& p : all)
    CHECK_NOTHROW(p.others->require_intact());
  all[1].others->break_off();
  CHECK_NOTHROW(all[1].others->require_intact());
  for (const std::size_t p : {0, 2}) {
    const auto e = caught([&] { all[p].others->require_intact(); });
    CHECK(e.code() == troupe::errc::peer_failure);
    CHECK(says(e, "process 1 of this host has broken off"));
  }
}

} // TEST_SUITE("comm.engine.neighbours")
