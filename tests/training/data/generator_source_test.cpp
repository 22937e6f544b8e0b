// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <troupe/training/data/generator_source.hpp>

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.generator_source") {

namespace {

struct numbers {
  arena memory{make_host_memory_source()};

  feed_map batch(float value) {
    auto x = tensor::make(memory, {2, 1}, dtype::float32);
    for (auto& v : x.values<float>())
      v = value;
    return {{"x", std::move(x)}};
  }
};

float value_of(const feed_map& batch) {
  return batch.at("x").values<float>()[0];
}

} // namespace

TEST_CASE_FIXTURE(numbers, "an application's function makes each batch") {
  const auto source = make_generator_source(
    [this](std::uint64_t epoch, std::uint64_t index) {
      return batch(static_cast<float>(10 * epoch + index));
    },
    {.steps_per_epoch = 3, .batch = 2});
  CHECK(source->steps_per_epoch() == 3);
  CHECK(source->batch_samples(1) == 2);
  CHECK(value_of(source->batch(4, 2)) == 42);
  CHECK_FALSE(source->has_ended());
}

TEST_CASE("an epoch without steps or samples, and no function, are refused") {
  const auto nothing = [](std::uint64_t, std::uint64_t) { return feed_map{}; };
  CHECK(caught([&] {
          make_generator_source(nothing, {.steps_per_epoch = 0});
        }).code()
        == errc::invalid_argument);
  CHECK(caught([] { make_generator_source(nullptr, {}); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { batch_queue({.batch = 0}, 1); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { batch_queue({}, 0); }).code() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(numbers, "a full queue refuses a batch, which stays whole") {
  batch_queue queue({.batch = 2}, 2);
  auto a = batch(1), b = batch(2), c = batch(3);
  CHECK(queue.try_push(a));
  CHECK(queue.try_push(b));
  CHECK_FALSE(queue.try_push(c));
  CHECK(value_of(c) == 3);
  CHECK(value_of(queue.batch(0, 0)) == 1);
  CHECK(queue.try_push(c));
  CHECK(value_of(queue.batch(0, 1)) == 2);
  CHECK(value_of(queue.batch(0, 2)) == 3);
}

TEST_CASE_FIXTURE(numbers, "a producer that is faster waits") {
  batch_queue queue({.batch = 2}, 1);
  constexpr int count = 50;
  std::thread producer([&] {
    for (int i = 0; i < count; ++i)
      queue.push(batch(static_cast<float>(i)));
    queue.close();
  });
  std::vector<float> got;
  while (!queue.has_ended())
    got.push_back(value_of(queue.batch(0, 0)));
  producer.join();
  REQUIRE(got.size() == count);
  for (int i = 0; i < count; ++i)
    CHECK(got[static_cast<std::size_t>(i)] == static_cast<float>(i));
}

TEST_CASE_FIXTURE(numbers, "a closed queue gives out what waits, takes no more "
                           "and then ends") {
  batch_queue queue({.batch = 2}, 2);
  queue.push(batch(1));
  queue.close();
  auto late = batch(2);
  CHECK_FALSE(queue.push(batch(2)));
  CHECK_FALSE(queue.try_push(late));
  CHECK_FALSE(queue.has_ended());
  CHECK(value_of(queue.batch(0, 0)) == 1);
  CHECK(queue.has_ended());
  CHECK(caught([&] { queue.batch(0, 1); }).code() == errc::cancelled);
}

TEST_CASE_FIXTURE(numbers, "closing a queue frees a producer that waits") {
  batch_queue queue({.batch = 2}, 1);
  queue.push(batch(1));
  std::thread producer([&] { CHECK_FALSE(queue.push(batch(2))); });
  queue.close();
  producer.join();
}

} // TEST_SUITE("training.generator_source")
