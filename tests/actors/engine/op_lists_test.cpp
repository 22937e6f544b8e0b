// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/op_lists.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

using troupe::actors::op_lists;

TEST_SUITE("actors.op_lists") {

namespace {

using words = std::vector<std::uint32_t>;
using lengths = std::array<std::size_t, 5>;

/// Lists of these lengths that contain consecutive numbers, kept in `memory`.
op_lists lists_of(const lengths& of, words& memory) {
  memory.resize(std::accumulate(of.begin(), of.end(), std::size_t{0}));
  std::iota(memory.begin(), memory.end(), 1u);
  op_lists::numbers left{memory};
  const auto take = [&left](std::size_t count) {
    const auto taken = left.first(count);
    left = left.subspan(count);
    return taken;
  };
  return {take(of[0]), take(of[1]), take(of[2]), take(of[3]), take(of[4])};
}

bool are_equal(const op_lists& a, const op_lists& b) {
  return std::ranges::equal(a.own_places, b.own_places)
         && std::ranges::equal(a.shared_places, b.shared_places)
         && std::ranges::equal(a.told_now, b.told_now)
         && std::ranges::equal(a.delayed_places, b.delayed_places)
         && std::ranges::equal(a.told_later, b.told_later);
}

} // namespace

TEST_CASE("lists of any length are read as they were appended") {
  for (std::size_t list = 0; list < 5; ++list)
    for (std::size_t length : {0, 1, 62, 63, 64, 254, 255, 256, 1000}) {
      CAPTURE(list);
      CAPTURE(length);
      lengths of{1, 0, 2, 4, 2};
      of[list] = length;
      words memory, others_memory, all;
      const auto lists = lists_of(of, memory);
      const auto others = lists_of({2, 1, 4, 0, 0}, others_memory);
      others.append_to(all);
      const auto second = all.size();
      lists.append_to(all);
      const auto third = all.size();
      others.append_to(all);
      CHECK(are_equal(op_lists::read(all.data()), others));
      CHECK(are_equal(op_lists::read(all.data() + second), lists));
      CHECK(are_equal(op_lists::read(all.data() + third), others));
    }
}

TEST_CASE("a few releases and messages of the step have a short head") {
  for (const auto& [of, is_short] : {std::pair{lengths{0, 0, 0, 0, 0}, true},
                                     {lengths{63, 63, 255, 0, 0}, true},
                                     {lengths{64, 0, 0, 0, 0}, false},
                                     {lengths{0, 64, 0, 0, 0}, false},
                                     {lengths{0, 0, 256, 0, 0}, false},
                                     {lengths{0, 0, 0, 2, 0}, false},
                                     {lengths{0, 0, 0, 0, 2}, false}}) {
    words memory, all;
    const auto lists = lists_of(of, memory);
    lists.append_to(all);
    CHECK(op_lists::is_short(all.data()) == is_short);
    if (is_short) {
      CHECK(all.size() == 1 + memory.size());
      CHECK(are_equal(op_lists::read_short(all.data()), lists));
    }
  }
}

TEST_CASE("lengths that fill the head are not taken for its mark") {
  words memory, all;
  const auto lists = lists_of({63, 63, 255, 63, 63}, memory);
  lists.append_to(all);
  CHECK(are_equal(op_lists::read(all.data()), lists));
}

} // TEST_SUITE("actors.op_lists")
