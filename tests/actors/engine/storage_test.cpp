// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/storage.hpp>

#include <troupe/kernels/memory/arena.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;

TEST_SUITE("actors.storage") {

namespace {

tensor some(arena& memory) {
  return tensor::make(memory, {100}, dtype::float32);
}

} // namespace

TEST_CASE("each step slot holds its own value") {
  arena memory{make_host_memory_source()};
  storage_places places{1, 3};
  storage s{"x", memory, places, 0};
  s.at(1).set(some(memory));
  CHECK_FALSE(s.at(0).has_value());
  CHECK(s.at(1).has_value());
  CHECK_FALSE(s.at(2).has_value());
  CHECK(&s.at(0) != &s.at(2));
}

TEST_CASE("an empty place gives its memory back") {
  arena memory{make_host_memory_source()};
  storage_places places{1, 2};
  storage s{"x", memory, places, 0};
  CHECK(s.name() == "x");
  CHECK(&s.memory() == &memory);
  s.at(0).set(some(memory));
  s.at(1).set(some(memory));
  storage_places::empty(s.at(0));
  CHECK_FALSE(s.at(0).has_value());
  CHECK(s.at(1).has_value());
  storage_places::empty(s.at(1));
  storage_places::empty(s.at(1));
  CHECK(memory.live_bytes() == 0);
}

TEST_CASE("a persistable variable is the same in all slots") {
  arena memory{make_host_memory_source()};
  variable in_scope;
  storage s{"w", memory, in_scope};
  CHECK(&s.at(0) == &in_scope);
  CHECK(&s.at(7) == &in_scope);
}

} // TEST_SUITE("actors.storage")
