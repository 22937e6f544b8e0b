// SPDX-License-Identifier: Apache-2.0

// What ranks tell each other of their ops.

#include <troupe/apps/stragglers/op_digest.hpp>
#include <troupe/apps/stragglers/usual_times.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::apps;
using namespace std::chrono_literals;

TEST_SUITE("apps.stragglers.op_digest") {

namespace {

op_digest two_ops() {
  return {
    {{{"conv2d", "conv 1"}, {1.5f, 2.5f, 3.5f}}, {{"relu", ""}, {0.125f}}},
    0.25f,
    7};
}

} // namespace

TEST_CASE("a digest is read as it was written, long ops first") {
  auto digest = two_ops();
  std::swap(digest.rows[0], digest.rows[1]);
  const auto again = read_digest(write_digest(digest));
  REQUIRE(again);
  CHECK(again->preempted == 0.25f);
  CHECK(again->window == 7);
  REQUIRE(again->rows.size() == 2);
  CHECK(again->rows[0].op == op_key{"conv2d", "conv 1"});
  CHECK(again->rows[0].ms == std::vector{1.5f, 2.5f, 3.5f});
  CHECK(again->rows[1].op == op_key{"relu", ""});
  CHECK(again->rows[1].ms == std::vector{0.125f});
}

TEST_CASE("a digest without ops is one") {
  const auto again = read_digest(write_digest({}));
  REQUIRE(again);
  CHECK(again->rows.empty());
}

TEST_CASE("a digest that is too long for a note lacks its shortest ops") {
  op_digest digest;
  constexpr std::size_t ops = 20'000;
  for (std::size_t i = 0; i < ops; ++i)
    digest.rows.push_back({{"mul", "output_" + std::to_string(i)},
                           {static_cast<float>(i), static_cast<float>(i)}});
  const auto text = write_digest(digest);
  CHECK(text.size() < 256 * 1024);
  CHECK(text.size() > 128 * 1024);
  const auto again = read_digest(text);
  REQUIRE(again);
  CHECK(again->rows.front().ms[0] == ops - 1);
  CHECK(again->rows.size() < ops);
  CHECK(again->rows.back().ms[0] == ops - again->rows.size());
}

TEST_CASE("a text that is no digest is refused") {
  for (const auto* text :
       {"", "a digest", "fastest", "0 1 \"relu\"", "0 1 \"relu\" \"x\"",
        "0 1 \"relu\" \"x\" 2 1.5", "0 1 \"relu\" \"x\" 999999999 1",
        "0 1 \"relu\" \"x\" 1 y", "0 1 \"relu\" \"x\" -1", "0", "0 1 2"}) {
    CAPTURE(text);
    CHECK(!read_digest(text));
  }
}

TEST_CASE("the fastest rank of each op is the one with the least median") {
  auto slow = two_ops();
  auto fast = two_ops();
  slow.rows[1].ms = {0.5f};
  fast.rows[0].ms = {1.0f, 2.0f, 9.0f};
  fast.rows.push_back({{"mul", "only_here"}, {4.0f}});
  const auto read = read_fastest(write_fastest(fastest_of({slow, fast})));
  REQUIRE(read);
  REQUIRE(read->size() == 3);
  CHECK((*read)[0].op == op_key{"mul", "only_here"}); // the longest one
  CHECK((*read)[1].op == op_key{"conv2d", "conv 1"});
  CHECK((*read)[1].rank == 1);
  CHECK((*read)[1].ms == 2.0f);
  CHECK((*read)[2].op == op_key{"relu", ""});
  CHECK((*read)[2].rank == 1);
  CHECK((*read)[2].ms == 0.125f);
}

TEST_CASE("a text that does not name the fastest ranks is refused") {
  for (const auto* text : {"", "0", "fastest \"relu\" \"x\" 1",
                           "fastest \"relu\" \"x\" -1 y", "fastest relu"}) {
    CAPTURE(text);
    CHECK(!read_fastest(text));
  }
}

TEST_CASE("an op's usual times are its own median and the fastest rank's") {
  usual_times usual;
  CHECK(usual.of({"relu", ""}).median == 0ns);
  usual.set_own(two_ops());
  usual.set_fastest({{{"conv2d", "conv 1"}, 3, 2.0f}});
  const auto of = usual.of({"conv2d", "conv 1"});
  CHECK(of.median == 2500us);
  CHECK(of.fastest == 2ms);
  CHECK(of.fastest_rank == 3);
  CHECK(usual.of({"relu", ""}).median == 125us);
  CHECK(usual.of({"relu", ""}).fastest == 0ns);
  usual.set_own(
    {{{{"relu", ""}, {}}}, 0, 0}); // a window in which it did not run
  CHECK(usual.of({"relu", ""}).median == 125us);
}

} // TEST_SUITE("apps.stragglers.op_digest")
