// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/recorded_results.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe::actors;

TEST_SUITE("actors.engine.recorded_results") {

TEST_CASE("each op has its own temporaries, also after ops without any") {
  recorded_results results;
  results.add({{4, 2}, {7}, {}, false});
  results.add({});
  results.add({{}, {3}, {5, 6}, true});
  results.add({{9}, {}, {}, false});
  const auto list = [](std::span<const std::uint32_t> of) {
    return std::vector<std::uint32_t>(of.begin(), of.end());
  };
  using numbers = std::vector<std::uint32_t>;
  CHECK(list(results.allocated(0)) == numbers{4, 2});
  CHECK(list(results.in_place(0)) == numbers{7});
  CHECK(results.allocated(1).empty());
  CHECK(results.in_place(1).empty());
  CHECK(results.allocated(2).empty());
  CHECK(list(results.in_place(2)) == numbers{3});
  CHECK(list(results.merged(2)) == numbers{5, 6});
  CHECK(list(results.allocated(3)) == numbers{9});
  CHECK(results.merged(3).empty());
  CHECK(results.in_place(3).empty());
  CHECK_FALSE(results.is_collective(0));
  CHECK(results.is_collective(2));
}

} // TEST_SUITE("actors.engine.recorded_results")
