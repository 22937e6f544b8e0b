// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/joint_steps.hpp>

#include <doctest/doctest.h>

using troupe::actors::joint_steps;

TEST_SUITE("actors.joint_steps") {

TEST_CASE("a step has ended when each side's part has, once, in order") {
  joint_steps steps{3, 0};
  CHECK(steps.part_ended(1, 0, ""));
  CHECK(steps.part_ended(1, 1, ""));
  CHECK(steps.part_ended(0, 0, ""));
  CHECK_FALSE(steps.next());
  CHECK(steps.part_ended(2, 0, ""));
  const auto ended = steps.next();
  REQUIRE(ended);
  CHECK(ended->step == 0);
  CHECK(ended->failure.empty());
  CHECK_FALSE(steps.next());
}

TEST_CASE("a step fails with the first failure of any side") {
  joint_steps steps{2, 0};
  steps.part_ended(1, 0, "first");
  steps.part_ended(0, 0, "second");
  CHECK(steps.next()->failure == "first");
  steps.part_ended(0, 1, "");
  steps.part_ended(1, 1, "");
  CHECK(steps.next()->failure.empty());
}

TEST_CASE("a failure is known until its step has ended") {
  joint_steps steps{2, 0};
  CHECK(steps.first_failure().empty());
  steps.part_ended(1, 0, "");
  steps.part_ended(1, 1, "of step 1");
  CHECK(steps.first_failure() == "of step 1");
  steps.part_ended(0, 0, "");
  steps.part_ended(0, 1, "");
  while (steps.next()) {
  }
  CHECK(steps.first_failure().empty());
}

TEST_CASE("numbers that cannot be do not count") {
  joint_steps steps{2, 0};
  CHECK_FALSE(steps.part_ended(2, 0, ""));
  CHECK_FALSE(steps.part_ended(1, 1, ""));
  CHECK_FALSE(steps.part_ended(1, ~0ull, "made up"));
  CHECK(steps.part_ended(1, 0, ""));
  CHECK_FALSE(steps.part_ended(1, 0, "again"));
  CHECK(steps.part_ended(0, 0, ""));
  CHECK(steps.next()->failure.empty());
  CHECK_FALSE(steps.next());
}

TEST_CASE("after a loss steps end with this side's part and fail") {
  joint_steps steps{3, 0};
  steps.part_ended(0, 0, "");
  steps.part_ended(1, 0, "");
  steps.part_ended(2, 0, ""); // whole
  steps.part_ended(0, 1, "");
  steps.part_ended(1, 1, "of its own");
  steps.part_ended(0, 2, "");
  steps.lose("process 2 is lost");
  steps.lose("process 1 is lost");
  CHECK(steps.next()->failure.empty());
  CHECK(steps.next()->failure == "of its own");
  CHECK(steps.next()->failure == "process 2 is lost");
  CHECK_FALSE(steps.next());
  CHECK(steps.part_ended(0, 3, ""));
  CHECK(steps.next()->step == 3);
}

} // TEST_SUITE("actors.joint_steps")
