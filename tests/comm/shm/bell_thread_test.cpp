// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/bell_thread.hpp>
#include <troupe/comm/shm/process_line.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <utility>

using namespace troupe::comm::shm;
using namespace std::chrono_literals;

TEST_SUITE("comm.shm.bell_thread") {

namespace {

/// What its thread has seen of the changes that others ring for.
struct bell_rig {
  process_line line;
  std::atomic<std::uint32_t> changes{0}, seen{0};
  std::atomic<std::uint32_t> times{0}; // that the thread has worked
  bell_thread thread{"troupe-test", line, [this] {
                       seen = changes.load();
                       ++times;
                     }};

  void change_something() {
    ++changes;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ring(line);
  }
};

bool comes_true(const auto& condition) {
  for (const auto end = std::chrono::steady_clock::now() + 20s;
       !condition() && std::chrono::steady_clock::now() < end;)
    std::this_thread::yield();
  return condition();
}

} // namespace

TEST_CASE("the thread sees what was changed before the bell rang") {
  bell_rig rig;
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    rig.change_something();
    REQUIRE(comes_true([&] { return rig.seen == i; }));
  }
}

TEST_CASE("the thread sleeps as long as no bell rings") {
  bell_rig rig;
  rig.change_something();
  REQUIRE(comes_true([&] { return rig.times > 0; }));
  const auto before = rig.times.load();
  std::this_thread::sleep_for(20ms);
  CHECK(rig.times <= before + 1); // it may be woken for nothing
}

TEST_CASE("the thread ends, whatever it does when it is told to") {
  // Ends come at any time after a notice: while the thread wakes, looks at the
  // bell, works and falls asleep again.
  std::packaged_task<void()> all{[] {
    for (int i = 0; i < 20'000; ++i) {
      const auto rig = std::make_unique<bell_rig>();
      rig->change_something();
      for (int pause = i % 500; pause > 0; --pause)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }};
  const auto is_done = all.get_future();
  std::thread{std::move(all)}.detach(); // nothing wakes it if it is stuck
  REQUIRE(is_done.wait_for(20s) == std::future_status::ready);
}

} // TEST_SUITE("comm.shm.bell_thread")
