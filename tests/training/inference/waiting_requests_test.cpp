// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/waiting_requests.hpp>

#include <training/inference/small_programs.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::inference;

TEST_SUITE("training.waiting_requests") {

namespace {

constexpr std::chrono::microseconds delay{2000};

/// A queue with at most six samples in a step, for [batch, width].
struct some_queue {
  waiting_requests queue{6, delay};
  std::map<const prediction_request*, std::string> names;

  void add(const std::string& name, std::int64_t samples,
           std::int64_t width = 1) {
    const std::vector<float> values(static_cast<std::size_t>(samples * width));
    auto made = std::make_unique<prediction_request>(
      share_batch(fed<float>("x", {samples, width}, values)), samples,
      [](const auto&) {});
    names[made.get()] = name;
    queue.add({std::move(made), nullptr});
  }
  /// The names of the requests of the next step.
  std::string next() {
    std::string taken;
    for (auto& item : queue.take())
      taken += names.at(item.request.get());
    return taken;
  }
};

} // namespace

TEST_CASE_FIXTURE(some_queue, "a step takes the oldest requests that fit") {
  add("a", 2);
  add("b", 3);
  CHECK_FALSE(queue.is_full());
  add("c", 2);
  add("d", 1);
  CHECK(queue.is_full());
  CHECK(next() == "ab"); // d would fit, but does not overtake c
  CHECK(next() == "cd");
  CHECK(queue.empty());
}

TEST_CASE_FIXTURE(some_queue, "a request larger than a step runs whole") {
  add("a", 20);
  add("b", 1);
  CHECK(queue.is_full());
  CHECK(next() == "a");
  CHECK_FALSE(queue.is_full());
  CHECK(next() == "b");
}

TEST_CASE_FIXTURE(some_queue, "requests of other extents are in other steps") {
  add("a", 1, 4);
  add("b", 1, 5);
  add("c", 1, 4);
  CHECK(next() == "ac");
  CHECK(next() == "b");
}

TEST_CASE_FIXTURE(some_queue, "a step is due when its oldest request is") {
  add("a", 1);
  const auto oldest = queue.due() - delay;
  add("b", 1);
  CHECK(queue.due() - delay == oldest);
  CHECK(waiting_requests::clock::now() >= oldest);
}

TEST_CASE_FIXTURE(some_queue, "what runs again is the next, alone if told") {
  add("a", 1);
  add("b", 1);
  auto batch = queue.take();
  add("c", 1);
  batch[1].alone = true;
  queue.put_back(std::move(batch));
  CHECK_FALSE(queue.next_is_alone());
  CHECK(next() == "ac");
  CHECK(queue.next_is_alone());
  CHECK(queue.is_full());
  CHECK(next() == "b");
}

TEST_CASE("a request is answered once, also if it is lost") {
  std::vector<errc> answers;
  const auto made = [&] {
    return std::make_unique<prediction_request>(
      nullptr, 1, [&](const prediction_outcome& outcome) {
        answers.push_back(outcome.failure.value().code());
        throw 1; // is dropped
      });
  };
  made();
  CHECK(answers == std::vector<errc>{errc::cancelled});
  const auto refused = made();
  refused->refuse(error(errc::out_of_range, "no"));
  refused->refuse(error(errc::out_of_range, "no"));
  CHECK(answers == std::vector<errc>{errc::cancelled, errc::out_of_range});
}

} // TEST_SUITE("training.waiting_requests")
