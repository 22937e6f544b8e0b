// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/configure.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/graph/layers.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>

#include <support/child_process.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <pthread.h>
#include <sched.h>

#include <future>
#include <stdexcept>
#include <string_view>

using namespace troupe;

TEST_SUITE("actors.configure") {

namespace {

/// Not the stand-in, which runs actors until the workers have started.
bool is_worker() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string_view{name}.starts_with("troupe-work-");
}

std::size_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

/// On how many cores a worker may run in a system with `workers` workers.
std::size_t cores_of_worker(std::size_t workers) {
  caf::actor_system_config config;
  const auto system = make_actor_system(config, static_cast<int>(workers));
  for (;;) {
    std::promise<std::size_t> found; // 0: it was no worker
    system->spawn([&](caf::event_based_actor*) {
      found.set_value(is_worker() ? allowed_cores() : 0);
    });
    if (const auto cores = found.get_future().get(); cores > 0)
      return cores;
  }
}

} // namespace

TEST_CASE("as many workers as cores are pinned to one core each") {
  CHECK(cores_of_worker(usable_cores()) == 1);
}

// Otherwise two processes with one worker each would share a core.
TEST_CASE("fewer workers than cores are not pinned") {
  if (usable_cores() < 2)
    return test::skip_case("needs two cores");
  CHECK(cores_of_worker(usable_cores() - 1) == usable_cores());
}

// If a thread does not start, CAF would end the process. So does a sanitizer if
// its own thread does not start.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("constructing an executor throws if its threads cannot start") {
  if (::getuid() != 0)
    return test::skip_case("needs root, which can become any user");
  graph::network net;
  layers::mean(net.data("x", {-1, 4}));
  for (rlim_t threads = 1; threads <= 4; ++threads) {
    CAPTURE(threads);
    CHECK(test::exit_code(test::in_child([&] {
            test::allow_threads(threads);
            try {
              executor{net.main, {.threads = 2}};
            } catch (const error& e) {
              if (e.code() == errc::kernel_failure
                  && e.message().starts_with("cannot start "))
                return;
              throw;
            }
            throw std::runtime_error("it has its threads");
          }))
          == (threads <= usable_cores() + 2 ? 0 : 1));
  }
}
#endif

} // TEST_SUITE("actors.configure")
