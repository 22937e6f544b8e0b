// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/actor_table.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe;

TEST_SUITE("base.actor_table") {

namespace {

recorded_actor named(const std::string& name) {
  recorded_actor made;
  made.name = name;
  return made;
}

actor_number known(actor_table& table, const actor_key& key) {
  return table.find_or_add(key, [] { return named("added"); });
}

} // namespace

TEST_CASE("an actor is found by its key until it has ended") {
  actor_table table;
  const actor_key key{1, 5};
  CHECK(table.add(key, named("first")) == 0);
  CHECK(known(table, key) == 0);
  CHECK(known(table, {2, 5}) == 1); // of another system
  table.end(0, false, "normal");
  CHECK(known(table, key) == 2);
  // A later actor with the key of one that lives takes its place.
  CHECK(table.add(key, named("next")) == 3);
  table.end(2, false, "normal");
  CHECK(known(table, key) == 3);
}

TEST_CASE("changes since a version are what was added or has changed") {
  actor_table table;
  table.add({1, 1}, named("a"));
  table.add({1, 2}, named("b"));
  CHECK(table.type_of(77, [] { return "(int)"; }) == 0);
  const auto all = table.since(0);
  CHECK(all.actors.size() == 2);
  CHECK(all.types.size() == 1);
  CHECK(table.since(all.version).empty());

  table.rename(1, "c");
  CHECK(table.type_of(77, [] { return "unused"; }) == 0);
  CHECK(table.type_of(78, [] { return "(float)"; }) == 1);
  const auto more = table.since(all.version);
  REQUIRE(more.actors.size() == 1);
  CHECK(more.actors[0].first == 1);
  CHECK(more.actors[0].second.name == "c");
  REQUIRE(more.types.size() == 1);
  CHECK(more.types[0].second == "(float)");

  table.end(0, true, "lost");
  table.end(0, false, "again");
  const auto last = table.since(more.version);
  REQUIRE(last.actors.size() == 1);
  CHECK(last.actors[0].second.has_failed);
  CHECK(last.actors[0].second.reason == "lost");
  CHECK(last.actors[0].second.end_ns);
}

TEST_CASE("a full table has no number for further actors and types") {
  actor_table table;
  for (std::uint64_t i = 0; i < actor_table::most_actors; ++i)
    table.add({1, i}, named("one"));
  CHECK(table.add({1, actor_table::most_actors}, named("late")) == no_actor);
  CHECK(known(table, {2, 0}) == no_actor);
  CHECK(known(table, {1, 3}) == 3);
  table.rename(no_actor, "nobody");
  table.end(no_actor, true, "never");
  CHECK(table.since(0).actors.size() == actor_table::most_actors);

  for (std::uint64_t i = 0; i < actor_table::most_types + 5; ++i)
    CHECK(table.type_of(i, [] { return "(type)"; }) < actor_table::most_types);
  const auto types = table.since(0).types;
  REQUIRE(types.size() == actor_table::most_types);
  CHECK(types.back().second == "other types");
}

} // TEST_SUITE("base.actor_table")
