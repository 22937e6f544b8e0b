// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/spread_choice.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace troupe::actors;

namespace {

constexpr std::size_t ops = 100;

/// A graph whose steps take this long, spread and gathered.
struct graph_times {
  std::uint64_t spread_ns;
  std::uint64_t gathered_ns;

  /// Returns how many of `steps` steps were gathered.
  int run(spread_choice& choice, int steps) const {
    int gathered = 0;
    for (int i = 0; i < steps; ++i) {
      gathered += choice.gathered() ? 1 : 0;
      choice.took(choice.gathered() ? gathered_ns : spread_ns);
    }
    return gathered;
  }
};

constexpr graph_times faster_gathered{4000, 2000};
constexpr graph_times faster_spread{4000, 6000};
constexpr int long_enough = 6000;

} // namespace

TEST_SUITE("actors.spread_choice") {
TEST_CASE("a graph begins spread") {
  CHECK_FALSE(spread_choice{ops}.gathered());
}

TEST_CASE("tiny ops are gathered where that is faster") {
  spread_choice choice{ops};
  CHECK(faster_gathered.run(choice, 100) > 70);
  faster_gathered.run(choice, long_enough);
  CHECK(faster_gathered.run(choice, long_enough) > 0.99 * long_enough);
}

TEST_CASE("tiny ops are spread where that is faster, trials are rare") {
  spread_choice choice{ops};
  faster_spread.run(choice, long_enough);
  const auto gathered = faster_spread.run(choice, long_enough);
  CHECK(gathered > 0);
  CHECK(gathered < 0.01 * long_enough);
}

TEST_CASE("a trial that is far behind ends after the steps that settle") {
  constexpr graph_times far_slower{4000, 40'000};
  spread_choice choice{ops};
  CHECK(far_slower.run(choice, 16) == spread_choice::settling_steps + 1);
}

TEST_CASE("longer ops are never gathered") {
  constexpr graph_times longer{spread_choice::longest_op_ns * ops + 1, 1};
  spread_choice choice{ops};
  CHECK(longer.run(choice, long_enough) == 0);
}

TEST_CASE("ops that become longer are spread at once") {
  spread_choice choice{ops};
  faster_gathered.run(choice, long_enough);
  REQUIRE(choice.gathered());
  constexpr auto long_step = spread_choice::longest_op_ns * ops + 1;
  choice.took(long_step);
  CHECK_FALSE(choice.gathered());
  constexpr graph_times longer{long_step, long_step};
  CHECK(longer.run(choice, long_enough) == 0);
}

TEST_CASE("a graph that changes is tried again") {
  spread_choice choice{ops};
  faster_gathered.run(choice, long_enough);
  faster_spread.run(choice, long_enough);
  CHECK_FALSE(choice.gathered());
  faster_gathered.run(choice, long_enough);
  CHECK(choice.gathered());
}

TEST_CASE("what was under way when the streams moved does not count") {
  spread_choice choice{ops};
  while (!choice.gathered())
    choice.took(4000);
  for (std::uint32_t i = 0; i < spread_choice::settling_steps; ++i)
    choice.took(1); // seemingly fast
  for (auto i = spread_choice::settling_steps; i < spread_choice::trial_steps;
       ++i)
    choice.took(5000);
  CHECK_FALSE(choice.gathered());
}

} // TEST_SUITE("actors.spread_choice")
