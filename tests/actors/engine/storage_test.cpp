// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/storage.hpp>

#include <troupe/kernels/memory/arena.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::actors;

TEST_SUITE("actors.storage") {

namespace {

tensor some(arena& memory) {
  return tensor::make(memory, {100}, dtype::float32);
}

} // namespace

TEST_CASE("the last user empties the step slot, and it can be reused") {
  arena memory{make_host_memory_source()};
  storage_places places{1, 2};
  places.expect(0, 3);
  storage s{"x", memory, places, 0};
  CHECK_FALSE(s.persistable());
  CHECK(s.name() == "x");
  CHECK(&s.memory() == &memory);
  for (int round = 0; round < 5; ++round) {
    s.at(0).set(some(memory));
    s.at(1).set(some(memory));
    CHECK_FALSE(s.released(0));
    CHECK_FALSE(s.released(0));
    CHECK(s.at(0).has_value());
    CHECK(s.released(0));
    CHECK_FALSE(s.at(0).has_value());
    CHECK(s.at(1).has_value());
    for (int i = 0; i < 3; ++i)
      CHECK(s.released(1) == (i == 2));
  }
  CHECK(memory.live_bytes() == 0);
}

TEST_CASE("each step slot holds its own value") {
  arena memory{make_host_memory_source()};
  storage_places places{1, 3};
  places.expect(0, 1);
  storage s{"x", memory, places, 0};
  s.at(1).set(some(memory));
  CHECK_FALSE(s.at(0).has_value());
  CHECK(s.at(1).has_value());
  CHECK_FALSE(s.at(2).has_value());
  CHECK(&s.at(0) != &s.at(2));
}

TEST_CASE(
  "a persistable variable is the same in all slots and never released") {
  arena memory{make_host_memory_source()};
  variable in_scope;
  storage s{"w", memory, in_scope};
  CHECK(s.persistable());
  CHECK(&s.at(0) == &in_scope);
  CHECK(&s.at(7) == &in_scope);
  in_scope.set(some(memory));
  for (int i = 0; i < 10; ++i)
    CHECK_FALSE(s.released(0));
  CHECK(in_scope.has_value());
}

TEST_CASE("exactly one of several concurrent users is the last") {
  constexpr std::uint32_t users = 4;
  constexpr int rounds = 2000;
  arena memory{make_host_memory_source()};
  storage_places places{1, 1};
  places.expect(0, users);
  storage s{"x", memory, places, 0};
  std::atomic<int> last{0};
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};
  auto use = [&] {
    for (int r = 0; r < rounds; ++r) {
      while (round.load() < r)
        std::this_thread::yield();
      last += s.released(0);
      if (++arrived == static_cast<int>(users)) {
        arrived = 0;
        ++round;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < users; ++i)
    threads.emplace_back(use);
  for (auto& t : threads)
    t.join();
  CHECK(last == rounds);
}

} // TEST_SUITE("actors.storage")
