// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/request_queue.hpp>

#include <support/caught.hpp>
#include <training/inference/small_programs.hpp>
#include <troupe/training/inference/predicting_executor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::inference;

TEST_SUITE("training.request_queue") {

namespace {

/// A queue of a predictor that has not looked yet, and how often it was told.
struct told_queue {
  asked_program asked = multiplier();
  request_queue queue;
  int told = 0;

  explicit told_queue(std::chrono::microseconds delay, std::size_t most = 100)
    : queue(std::make_shared<const graph::program>(asked.test),
            {.outputs = {asked.output},
             .max_batch = 4,
             .max_delay = delay,
             .most_waiting = most}) {
    queue.open(nullptr, [this] { ++told; });
  }
  void add(std::int64_t samples = 1) {
    queue.add(share_batch(
                numbers(std::vector<float>(static_cast<std::size_t>(samples)))),
              [](const auto&) {});
  }
  std::size_t taken(bool is_free = true) {
    return queue.next(is_free, true).batch.size();
  }
};

constexpr std::chrono::hours never{24};

} // namespace

TEST_CASE("a predictor is told once, until it has looked") {
  told_queue q{std::chrono::microseconds{0}};
  q.add();
  q.add();
  CHECK(q.told == 1);
  CHECK(q.taken() == 2);
  q.add(); // the predictor looks until nothing is left
  CHECK(q.told == 1);
  CHECK(q.taken() == 1);
  CHECK(q.taken() == 0);
  q.add();
  CHECK(q.told == 2);
}

TEST_CASE("while no step is free, a predictor is not told") {
  told_queue q{std::chrono::microseconds{0}};
  CHECK(q.taken(false) == 0);
  for (int i = 0; i < 10; ++i)
    q.add();
  CHECK(q.told == 0);
  CHECK(q.taken() == 4);
}

TEST_CASE("while a step may become fuller, a predictor is told when it is "
          "full") {
  told_queue q{never};
  q.add();
  CHECK(q.told == 1);
  const auto next = q.queue.next(true, true);
  CHECK(next.batch.empty());
  CHECK(next.due.has_value()); // the predictor sets an alarm
  q.add(2);
  CHECK(q.told == 1);
  q.add();
  CHECK(q.told == 2);
  CHECK(q.taken() == 3);
}

TEST_CASE("what runs alone waits until nothing runs") {
  told_queue q{std::chrono::microseconds{0}};
  q.add();
  auto batch = q.queue.next(true, true).batch;
  batch.front().alone = true;
  q.queue.put_back(std::move(batch));
  CHECK(q.queue.next(true, false).batch.empty());
  CHECK(q.queue.next(true, true).batch.size() == 1);
}

TEST_CASE("requests that are too many are refused and counted") {
  told_queue q{never, 3};
  for (int i = 0; i < 3; ++i)
    q.add();
  CHECK(caught([&] { q.add(); }).code() == errc::busy);
  CHECK(q.queue.counts().waiting == 3);
  CHECK(q.queue.counts().requests == 3);
  CHECK(q.queue.counts().refused == 1);
  q.queue.close(error(errc::cancelled, "closed"));
  CHECK(q.queue.counts().waiting == 0);
  CHECK(caught([&] { q.add(); }).code() == errc::cancelled);
}

TEST_CASE("options out of range are refused") {
  const auto asked = multiplier();
  const auto made = [&](const predictor_options& options) {
    return caught([&] {
      request_queue queue{std::make_shared<const graph::program>(asked.test),
                          options};
    });
  };
  predictor_options options{.outputs = {asked.output}};
  options.max_batch = 0;
  CHECK(says(made(options), "max_batch is 0"));
  options.max_batch = 2;
  options.max_delay = std::chrono::microseconds{-1};
  CHECK(says(made(options), "max_delay is -1 us"));
  options.max_delay = std::chrono::microseconds::max();
  CHECK(says(made(options), "must be from 0 to a day"));
  options.max_delay = {};
  options.most_waiting = 0;
  CHECK(made(options).code() == errc::invalid_argument);
  options.most_waiting = 1;
  options.executor.nodes.emplace();
  CHECK(says(made(options), "a predictor runs in one process"));
}

} // TEST_SUITE("training.request_queue")
