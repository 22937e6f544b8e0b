// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/configure.hpp>

#include <troupe/base/cores.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <pthread.h>
#include <sched.h>

#include <future>

using namespace troupe;

TEST_SUITE("actors.configure") {

namespace {

std::size_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

/// To how many cores a worker may go, of a system with so many.
std::size_t cores_of_worker(std::size_t workers) {
  caf::actor_system_config config;
  configure(config, static_cast<int>(workers));
  caf::actor_system system(config);
  std::promise<std::size_t> cores;
  system.spawn(
    [&](caf::event_based_actor*) { cores.set_value(allowed_cores()); });
  return cores.get_future().get();
}

} // namespace

TEST_CASE("workers that take all cores are bound to one each") {
  CHECK(cores_of_worker(usable_cores()) == 1);
}

// Else two processes with one worker each would share a core.
TEST_CASE("fewer workers than cores go where the system puts them") {
  if (usable_cores() < 2)
    return test::skip_case("needs two cores");
  CHECK(cores_of_worker(usable_cores() - 1) == usable_cores());
}

} // TEST_SUITE("actors.configure")
