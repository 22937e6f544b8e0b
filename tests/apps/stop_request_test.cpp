// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stop_request.hpp>

#include <support/child_process.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <signal.h>
#include <sys/resource.h>

using namespace troupe::apps;
using troupe::test::exit_code;
using troupe::test::in_child;

TEST_SUITE("apps.stop_request") {

namespace {

struct sigaction action_of(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action;
}

} // namespace

TEST_CASE("a signal asks for a stop once, and then ends the process") {
  for (int signal : {SIGINT, SIGTERM}) {
    const stop_request stop;
    CHECK_FALSE(stop.stopped());
    raise(signal);
    CHECK(stop.stopped());
  }
  constexpr int ended_by_signal = -1, returned = 0;
  const auto after = [](int first, int second) {
    return exit_code(in_child([=] {
      const stop_request stop;
      raise(first);
      raise(second);
    }));
  };
  for (int first : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(first);
    CHECK(after(first, SIGINT) == ended_by_signal);
    CHECK(after(first, SIGTERM) == ended_by_signal);
    CHECK(after(first, SIGHUP) == returned);
  }
}

TEST_CASE("a closed terminal asks for a stop, however often it says so") {
  const auto before = action_of(SIGHUP);
  signal(SIGHUP, SIG_DFL);
  {
    const stop_request stop;
    REQUIRE((action_of(SIGHUP).sa_handler != SIG_DFL));
    for (int time = 0; time < 2; ++time) {
      raise(SIGHUP);
      CHECK(stop.stopped());
    }
  }
  sigaction(SIGHUP, &before, nullptr);
}

TEST_CASE("a closed terminal that is ignored asks for nothing") {
  const auto before = action_of(SIGHUP);
  signal(SIGHUP, SIG_IGN); // as nohup does
  {
    const stop_request stop;
    raise(SIGHUP);
    CHECK_FALSE(stop.stopped());
  }
  CHECK((action_of(SIGHUP).sa_handler == SIG_IGN));
  sigaction(SIGHUP, &before, nullptr);
}

TEST_CASE("the handler runs on a stack of its own") {
  const stop_request stop;
  stack_t stack = {};
  sigaltstack(nullptr, &stack);
  CHECK((stack.ss_flags & SS_DISABLE) == 0);
  for (int signal : {SIGINT, SIGTERM})
    CHECK((action_of(signal).sa_flags & SA_ONSTACK) != 0);
}

TEST_CASE("a first signal has no effect when nothing is left to stop") {
  for (int signal : {SIGINT, SIGTERM}) {
    { const stop_request stop; }
    raise(signal); // would end the test
  }
}

TEST_CASE("a limit of CPU time asks for a stop") {
  const auto child = in_child([] {
    const stop_request stop;
    const stop_watch watch(stop, end_at_once());
    const rlimit one_second{1, RLIM_INFINITY};
    setrlimit(RLIMIT_CPU, &one_second);
    for (volatile bool forever = true; forever;) {
    }
  });
  CHECK(exit_code(child) == 1);
}

TEST_CASE("a watch acts again and again once a stop is asked for") {
  const stop_request stop;
  std::atomic<int> acted{0};
  {
    const stop_watch watch(stop, [&] {
      ++acted;
      acted.notify_all();
    });
    raise(SIGINT);
    for (int before = 0; before < 2; ++before)
      acted.wait(before);
  }
  CHECK(acted >= 2);
}

TEST_CASE("a stop that takes too long ends the process") {
  const auto child = in_child([] {
    const stop_request stop;
    const stop_watch watch(stop,
                           end_if_it_takes(std::chrono::milliseconds{100}));
    raise(SIGTERM);
    std::this_thread::sleep_for(std::chrono::minutes{1});
  });
  CHECK(exit_code(child) == 1);
}

TEST_CASE("nothing acts while nobody asks for a stop") {
  const stop_request stop;
  bool acted = false;
  {
    const stop_watch watch(stop, [&] { acted = true; });
  }
  CHECK_FALSE(acted);
}

} // TEST_SUITE("apps.stop_request")
