// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/process_line.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

using namespace troupe::comm::shm;

TEST_SUITE("comm.shm.process_line") {

namespace {

/// A thread that sleeps until a bell rings, and others that change something
/// and ring. Each of them waits until its change has been seen.
struct bell_rig {
  process_line line;
  std::atomic<std::uint32_t> changes{0}, seen{0};
  std::atomic<bool> ends{false}, is_stuck{false};

  void serve() {
    for (std::uint32_t heard = 0; !ends;) {
      sleep(line, heard);
      heard = line.bell.load(std::memory_order_acquire);
      seen = changes.load();
    }
  }
  void change_something() {
    const auto own = changes.fetch_add(1) + 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ring(line);
    const auto patience =
      std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (seen < own && !is_stuck) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > patience)
        is_stuck = true;
    }
  }
};

} // namespace

TEST_CASE("no ring is lost, whoever else rings at the same time") {
  constexpr int ringers = 3, rounds = 200'000;
  const auto rig = std::make_shared<bell_rig>();
  std::thread sleeper{[rig] { rig->serve(); }};
  std::vector<std::thread> all;
  for (int r = 0; r < ringers; ++r)
    all.emplace_back([rig] {
      for (int i = 0; i < rounds && !rig->is_stuck; ++i)
        rig->change_something();
    });
  for (auto& thread : all)
    thread.join();
  CHECK_FALSE(rig->is_stuck);
  if (rig->is_stuck)
    return sleeper.detach(); // nothing wakes it
  rig->ends = true;
  ring(rig->line);
  sleeper.join();
}

} // TEST_SUITE("comm.shm.process_line")
