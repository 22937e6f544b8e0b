// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/sharing_choice.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using troupe::actors::op_sharing;
using troupe::actors::sharing_choice;

TEST_SUITE("actors.sharing_choice") {

namespace {

/// Durations of a graph's steps with short ops, by way.
struct durations {
  std::uint64_t shared; ///< on all workers
  std::uint64_t on_one; ///< on one worker
};

/// Runs short steps. Returns how many of them ran on one worker.
int run(sharing_choice& choice, int steps, const durations& ns) {
  int on_one = 0;
  for (int s = 0; s < steps; ++s) {
    const auto is_on_one = choice.now() == op_sharing::no_ops;
    on_one += is_on_one;
    choice.took(is_on_one ? ns.on_one : ns.shared, true);
  }
  return on_one;
}

constexpr int warm_up = sharing_choice::short_steps_before_trials;
constexpr int trial = sharing_choice::trial_steps;

} // namespace

TEST_CASE("steps of long ops share long ops") {
  sharing_choice choice;
  for (int s = 0; s < 100; ++s) {
    choice.took(1'000'000, false);
    CHECK(choice.now() == op_sharing::long_ops);
  }
}

TEST_CASE("short steps run on one worker if that is faster") {
  sharing_choice choice;
  const durations ns{.shared = 150, .on_one = 100};
  CHECK(run(choice, warm_up, ns) == 0);
  CHECK(run(choice, trial, ns) == trial);
  CHECK(choice.now() == op_sharing::all_ops);
  CHECK(run(choice, trial, ns) == 0);
  constexpr int steps = 10'000;
  CHECK(run(choice, steps, ns) > 0.99 * steps);
}

TEST_CASE("short steps run on all workers if that is faster") {
  sharing_choice choice;
  const durations ns{.shared = 60, .on_one = 100};
  run(choice, warm_up + trial, ns);
  CHECK(choice.now() == op_sharing::all_ops);
  constexpr int steps = 10'000;
  CHECK(run(choice, steps, ns) < 0.01 * steps);
}

TEST_CASE("a way that is about as fast does not replace the other") {
  sharing_choice choice;
  constexpr int steps = 10'000;
  CHECK(run(choice, steps, {.shared = 98, .on_one = 100}) > 0.98 * steps);
}

TEST_CASE("a much slower way is tried for one step only") {
  sharing_choice choice;
  const durations ns{.shared = 201, .on_one = 100};
  run(choice, warm_up + trial, ns);
  CHECK(choice.now() == op_sharing::all_ops);
  run(choice, 1, ns);
  CHECK(choice.now() == op_sharing::no_ops);
}

TEST_CASE("a shared step that becomes long only fails its trial") {
  sharing_choice choice;
  run(choice, warm_up + trial, {.shared = 100, .on_one = 100});
  REQUIRE(choice.now() == op_sharing::all_ops);
  choice.took(1'000'000, false);
  CHECK(choice.now() == op_sharing::no_ops);
}

TEST_CASE("one long step ends the choice for short ones") {
  sharing_choice choice;
  run(choice, warm_up, {.shared = 100, .on_one = 100});
  REQUIRE(choice.now() == op_sharing::no_ops);
  choice.took(1'000'000, false);
  CHECK(choice.now() == op_sharing::long_ops);
  CHECK(run(choice, warm_up, {.shared = 100, .on_one = 100}) == 0);
  CHECK(choice.now() == op_sharing::no_ops);
}

TEST_CASE("after starting over, both ways are tried again") {
  // in a trial of all workers, and while one worker is kept
  for (int steps_before : {warm_up + trial, 1000})
    for (std::uint64_t on_one : {100u, 200u}) {
      CAPTURE(steps_before);
      CAPTURE(on_one);
      sharing_choice choice;
      run(choice, steps_before, {.shared = 150, .on_one = 100});
      choice.start_over();
      const durations ns{.shared = 150, .on_one = on_one};
      CHECK(run(choice, warm_up, ns) == 0);
      CHECK(run(choice, trial, ns) == trial);
      CHECK(run(choice, trial, ns) == 0);
      const auto faster =
        on_one < ns.shared ? op_sharing::no_ops : op_sharing::all_ops;
      CHECK(choice.now() == faster);
      // It is kept for as long as after a first trial.
      run(choice, sharing_choice::fewest_steps_kept - 1, ns);
      CHECK(choice.now() == faster);
      run(choice, 1, ns);
      CHECK(choice.now() != faster);
    }
}

TEST_CASE("the choice follows a graph whose durations change") {
  sharing_choice choice;
  run(choice, 1000, {.shared = 150, .on_one = 100});
  CHECK(choice.now() == op_sharing::no_ops);
  constexpr int steps = 10'000;
  CHECK(run(choice, steps, {.shared = 50, .on_one = 100}) < 0.2 * steps);
}

} // TEST_SUITE("actors.sharing_choice")
