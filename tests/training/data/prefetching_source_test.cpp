// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/prefetching_source.hpp>

#include <support/caught.hpp>

#include <troupe/actors/configure.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.prefetching_source") {

namespace {

using places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// Batches of one number each: 100 * epoch + index. An epoch has three steps.
class numbered_source final : public batch_source {
public:
  explicit numbered_source(arena& memory, std::atomic<int>* made = nullptr,
                           std::atomic<bool>* destroyed = nullptr)
    : memory_(memory), made_(made), destroyed_(destroyed) {}
  ~numbered_source() override {
    if (destroyed_)
      *destroyed_ = true;
  }

  std::uint64_t steps_per_epoch() const override { return 3; }
  std::int64_t batch_samples(std::uint64_t index) const override {
    return index == 2 ? 1 : 4;
  }
  feed_map batch(std::uint64_t epoch, std::uint64_t index) override {
    if (epoch == 9)
      throw error(errc::bad_file, "epoch 9 is damaged");
    auto value = tensor::make(memory_, {1}, dtype::int64);
    value.values<std::int64_t>()[0] =
      static_cast<std::int64_t>(100 * epoch + index);
    if (made_)
      ++*made_;
    return {{"x", value}};
  }

private:
  arena& memory_;
  std::atomic<int>* made_;
  std::atomic<bool>* destroyed_;
};

struct loading {
  arena memory{make_host_memory_source()};
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system = make_actor_system(config, 1);

  std::unique_ptr<batch_source> numbered(std::size_t ahead,
                                         std::atomic<int>* made = nullptr) {
    return make_prefetching_source(
      std::make_unique<numbered_source>(memory, made), ahead, *system);
  }
};

std::int64_t number(batch_source& source, std::uint64_t epoch,
                    std::uint64_t index) {
  return source.batch(epoch, index).at("x").values<std::int64_t>()[0];
}

std::vector<std::int64_t> numbers(batch_source& source, const places& asked) {
  std::vector<std::int64_t> all;
  for (auto [epoch, index] : asked)
    all.push_back(number(source, epoch, index));
  return all;
}

} // namespace

TEST_CASE_FIXTURE(loading, "batches come in the order of steps and epochs") {
  for (std::size_t ahead : {1u, 2u, 7u}) {
    CAPTURE(ahead);
    auto source = numbered(ahead);
    CHECK(source->steps_per_epoch() == 3);
    CHECK(source->batch_samples(2) == 1);
    CHECK(numbers(*source, {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}})
          == std::vector<std::int64_t>{0, 1, 2, 100, 101, 102});
  }
}

TEST_CASE_FIXTURE(loading, "what follows an epoch is made once too") {
  std::atomic<int> made{0};
  auto source = numbered(1, &made);
  numbers(*source, {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}});
  source.reset();
  CHECK(made == 7);
}

TEST_CASE_FIXTURE(loading, "another batch than the next can be asked for") {
  auto source = numbered(2);
  CHECK(numbers(*source, {{0, 0}, {3, 1}, {3, 2}, {0, 0}, {0, 0}, {0, 1}})
        == std::vector<std::int64_t>{0, 301, 302, 0, 0, 1});
}

TEST_CASE_FIXTURE(loading, "no more batches are made than the queue holds") {
  std::atomic<int> made{0};
  auto source = numbered(3, &made);
  number(*source, 0, 0);
  while (made < 4)
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(made == 4);
  number(*source, 0, 1);
  while (made < 5)
    std::this_thread::yield();
  CHECK(made == 5);
}

TEST_CASE_FIXTURE(loading, "a batch that cannot be made fails when it is due") {
  auto source = numbered(2);
  CHECK(numbers(*source, {{8, 1}, {8, 2}})
        == std::vector<std::int64_t>{801, 802});
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto failure = caught([&] { source->batch(9, 0); });
    CHECK(failure.code() == errc::bad_file);
  }
  CHECK(number(*source, 10, 0) == 1000);
}

TEST_CASE_FIXTURE(loading, "the source has gone when its reader has") {
  std::atomic<bool> destroyed{false};
  auto source = make_prefetching_source(
    std::make_unique<numbered_source>(memory, nullptr, &destroyed), 5, *system);
  number(*source, 0, 0);
  source.reset();
  CHECK(destroyed);
}

} // TEST_SUITE("training.prefetching_source")
