// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/name_table.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <string>

using namespace troupe::graph;

TEST_SUITE("graph.name_table") {

TEST_CASE("names are numbered in the order in which they come") {
  name_table names;
  CHECK(names.add("x") == 0);
  CHECK(names.add("w") == 1);
  CHECK(names.add("x") == 0);
  CHECK(names.size() == 2);
  CHECK(names[1] == "w");
}

TEST_CASE("a name that nobody added is not there") {
  name_table names{4};
  CHECK_FALSE(names.contains("x"));
  names.add("x");
  CHECK(names.contains("x"));
  CHECK(names.find("y") == name_table::none);
  CHECK(names.find("") == name_table::none);
}

TEST_CASE("numbers stay when the table grows") {
  name_table names;
  std::deque<std::string> kept; // the table does not copy
  for (name_id i = 0; i < 10000; ++i)
    CHECK(names.add(kept.emplace_back("v" + std::to_string(i))) == i);
  for (name_id i = 0; i < 10000; ++i)
    CHECK(names.find("v" + std::to_string(i)) == i);
}

} // TEST_SUITE("graph.name_table")
