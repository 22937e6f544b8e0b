// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/idle_workers.hpp>

#include <support/serving_threads.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::actors;

TEST_SUITE("actors.idle_workers") {

namespace {

constexpr std::chrono::seconds patience{30};

void serve_all(job_queue& queue) {
  auto& here = *worker::current();
  while (auto* j = queue.pop(0))
    here.run_chain(*j);
}

/// How often each part ran.
std::vector<int> counts_of(idle_workers& runner, std::size_t parts) {
  std::vector<std::atomic<int>> counts(parts);
  runner.run(parts, [&](std::size_t i) { ++counts[i]; });
  return {counts.begin(), counts.end()};
}

bool each_once(const std::vector<int>& counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [](int n) { return n == 1; });
}

} // namespace

TEST_CASE("without other workers the caller runs all parts") {
  job_queue queue{1};
  worker here{queue, 0};
  idle_workers runner{queue};
  for (std::size_t parts : {0, 1, 2, 7, 100}) {
    CAPTURE(parts);
    const auto counts = counts_of(runner, parts);
    CHECK(counts.size() == parts);
    CHECK(each_once(counts));
  }
}

TEST_CASE("a caller does not wait for helpers that never join") {
  job_queue queue{3}; // nobody else serves it
  worker here{queue, 0};
  auto runner = std::make_unique<idle_workers>(queue);
  std::set<std::thread::id> threads;
  for (int round = 0; round < 50; ++round)
    runner->run(
      5, [&](std::size_t) { threads.insert(std::this_thread::get_id()); });
  CHECK(threads == std::set{std::this_thread::get_id()});
  serve_all(queue); // helpers that come too late do nothing
  runner.reset();
}

TEST_CASE("destruction waits for helpers that are still queued") {
  job_queue queue{2};
  worker here{queue, 0};
  auto runner = std::make_unique<idle_workers>(queue);
  CHECK(each_once(counts_of(*runner, 3)));
  std::atomic<bool> gone{false};
  std::thread ending{[&] {
    runner.reset();
    gone = true;
  }};
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  CHECK_FALSE(gone);
  serve_all(queue);
  ending.join();
  CHECK(queue.pop(0) == nullptr);
}

TEST_CASE("with helpers every part runs exactly once") {
  job_queue queue{4};
  serving_threads helpers{queue, 1, 3};
  worker here{queue, 0};
  idle_workers runner{queue};
  for (int round = 0; round < 3000; ++round)
    REQUIRE(each_once(counts_of(runner, static_cast<std::size_t>(round % 9))));
}

TEST_CASE("writes of all parts are visible when run returns") {
  job_queue queue{3};
  serving_threads helpers{queue, 1, 2};
  worker here{queue, 0};
  idle_workers runner{queue};
  for (int round = 0; round < 500; ++round) {
    std::vector<int> written(64); // plain ints: a race shows under a sanitizer
    runner.run(written.size(), [&](std::size_t i) {
      written[i] = static_cast<int>(i) + round;
    });
    for (std::size_t i = 0; i < written.size(); ++i)
      REQUIRE(written[i] == static_cast<int>(i) + round);
  }
}

TEST_CASE("an idle worker helps to run parts") {
  job_queue queue{2};
  serving_threads helpers{queue, 1, 1};
  worker here{queue, 0};
  idle_workers runner{queue};
  std::atomic<int> inside{0};
  bool met[2] = {false, false};
  // Each part waits for the other: only two threads can end this in time.
  const auto until = std::chrono::steady_clock::now() + patience;
  runner.run(2, [&](std::size_t i) {
    ++inside;
    while (inside < 2 && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    met[i] = inside == 2;
  });
  CHECK(met[0]); // met[1] is true even if one thread runs both
}

TEST_CASE("a thread that is not a worker runs all parts itself") {
  job_queue queue{2};
  serving_threads helpers{queue, 0, 2};
  idle_workers runner{queue};
  std::set<std::thread::id> threads;
  runner.run(50,
             [&](std::size_t) { threads.insert(std::this_thread::get_id()); });
  CHECK(threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("nested parts all run exactly once") {
  job_queue queue{3};
  serving_threads helpers{queue, 1, 2};
  worker here{queue, 0};
  idle_workers runner{queue};
  for (int round = 0; round < 500; ++round) {
    std::vector<std::atomic<int>> counts(12);
    runner.run(4, [&](std::size_t outer) {
      runner.run(3, [&](std::size_t inner) { ++counts[3 * outer + inner]; });
    });
    REQUIRE(each_once({counts.begin(), counts.end()}));
  }
}

TEST_CASE("run throws a part's exception, and the next run is complete") {
  job_queue queue{3};
  serving_threads helpers{queue, 1, 2};
  worker here{queue, 0};
  idle_workers runner{queue};
  for (std::size_t bad = 0; bad < 200; ++bad) {
    std::vector<std::atomic<int>> counts(8);
    const auto throwing = [&](std::size_t i) {
      ++counts[i];
      if (i == bad % 8 || i == (bad + 3) % 8)
        throw std::out_of_range{"part"};
    };
    REQUIRE_THROWS_AS(runner.run(8, throwing), std::out_of_range);
    for (auto& n : counts)
      REQUIRE(n <= 1);
    REQUIRE(each_once(counts_of(runner, 8)));
  }
}

TEST_CASE("several runners can share a queue") {
  job_queue queue{4};
  serving_threads helpers{queue, 2, 2};
  auto work = [&](std::size_t index) {
    worker here{queue, index};
    idle_workers runner{queue};
    for (int round = 0; round < 1000; ++round)
      if (!each_once(counts_of(runner, 6)))
        return false;
    return true;
  };
  bool other = false;
  std::thread second{[&] { other = work(1); }};
  const auto mine = work(0);
  second.join();
  CHECK(mine);
  CHECK(other);
}

} // TEST_SUITE("actors.idle_workers")
