// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/steps/step_failures.hpp>

#include <doctest/doctest.h>

#include <memory>

using namespace troupe;
using namespace troupe::actors;

TEST_SUITE("actors.step_failures") {

namespace {

/// At most four steps in flight, without a graph.
struct some_steps {
  graph_context context;
  step_failures failures{context, nullptr, nullptr};

  some_steps() {
    for (int i = 0; i < 4; ++i)
      context.steps.push_back(std::make_unique<step_state>());
  }
  bool failed(step_id id) const {
    return context.state_of(id).failed.load(std::memory_order_relaxed);
  }
  void admit(step_id id, step_id oldest) { failures.admit(id, oldest, false); }
};

const error broken{errc::kernel_failure, "broken"};

} // namespace

TEST_CASE("fail_from fails its step and all later running steps") {
  some_steps s;
  for (step_id id = 0; id < 3; ++id)
    s.admit(id, 0);
  s.failures.fail_from(1, broken);
  CHECK_FALSE(s.failed(0));
  CHECK(s.failed(1));
  CHECK(s.failed(2));
}

TEST_CASE("a new step is cancelled until earlier failures are collected") {
  some_steps s;
  s.admit(0, 0);
  s.failures.fail_from(0, broken);
  s.admit(1, 0);
  CHECK(s.failed(1));
  CHECK(s.context.state_of(1).reason().code() == errc::cancelled);
  s.admit(2, 2); // the results of the others have been collected
  CHECK_FALSE(s.failed(2));
}

TEST_CASE("a step that reuses the slot of a failed step has not failed") {
  some_steps s;
  s.admit(0, 0);
  s.failures.fail_from(0, broken);
  s.admit(4, 4);
  CHECK_FALSE(s.failed(4));
}

TEST_CASE("a failure in another process applies once its step is admitted") {
  some_steps s;
  s.failures.failed_elsewhere(1, broken);
  s.admit(0, 0);
  CHECK_FALSE(s.failed(0));
  s.admit(1, 0);
  CHECK(s.failed(1));
}

TEST_CASE("once a process is gone, later steps cannot run") {
  some_steps s;
  s.admit(0, 0);
  s.failures.process_is_gone(1, broken);
  CHECK_FALSE(s.failed(0));
  CHECK_NOTHROW(s.failures.require_can_run(0));
  CHECK_THROWS_AS(s.failures.require_can_run(1), error);
}

} // TEST_SUITE("actors.step_failures")
