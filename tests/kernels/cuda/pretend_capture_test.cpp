// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/pretend_driver.hpp>
#include <support/caught.hpp>

#include <troupe/kernels/cuda/bodies/all.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cuda.pretend_capture") {

namespace {

using cuda::gpu_graph;

/// Two queues and numbers in pinned memory.
struct bench {
  bench() { std::fill_n(numbers, count, 0.0f); }
  ~bench() { api->deallocate_pinned(memory); }

  void add(cuda::gpu_queue& on, int to, int a, int b) const {
    const cuda::add::arguments arguments{numbers + a, numbers + b, numbers + to,
                                         1};
    api->launch(on, {cuda::all_bodies::number<cuda::add>()}, {1, 1}, &arguments,
                sizeof arguments);
  }
  void let_wait(cuda::gpu_queue& after, cuda::gpu_queue& before) const {
    api->record(*event, before);
    api->wait(after, *event);
  }
  /// What ending a recording says in which `what` was done.
  error end_after(const std::function<void()>& what) const {
    api->begin_capture(*a);
    add(*a, 0, 1, 1);
    caught_if_any(what);
    const auto e = caught([&] { api->end_capture(*a); });
    add(*a, 0, 1, 1); // the queue works
    api->synchronize(*a);
    return e;
  }
  static void caught_if_any(const std::function<void()>& what) {
    try {
      what();
    } catch (const error&) {
      // what breaks a recording may throw, too
    }
  }

  static constexpr std::size_t count = 64;
  std::shared_ptr<pretend_driver> api = make_pretend_driver();
  std::byte* memory = api->allocate_pinned(count * sizeof(float));
  float* numbers = reinterpret_cast<float*>(memory);
  std::unique_ptr<cuda::gpu_queue> a = api->make_queue(0),
                                   b = api->make_queue(0);
  std::unique_ptr<cuda::gpu_event> event = api->make_event(0);
};

} // namespace

TEST_CASE("the pretend driver runs recorded work at each launch") {
  const bench t;
  t.numbers[1] = 1;
  t.api->begin_capture(*t.a);
  t.add(*t.a, 0, 0, 1);
  t.let_wait(*t.b, *t.a);
  t.add(*t.b, 2, 0, 0);
  t.let_wait(*t.a, *t.b);
  const auto graph = t.api->end_capture(*t.a);
  t.api->synchronize(*t.a);
  t.api->synchronize(*t.b);
  CHECK(t.numbers[0] == 0);
  for (int i = 0; i < 3; ++i)
    t.api->launch_graph(*t.a, *graph);
  t.api->synchronize(*t.a);
  CHECK(t.numbers[0] == 3);
  CHECK(t.numbers[2] == 6);
  CHECK(t.api->graph_launches() == 3);
}

TEST_CASE("the pretend driver refuses what would break a recording of CUDA") {
  const bench t;
  const auto outside = t.api->make_event(0);
  t.api->record(*outside, *t.b);
  struct broken {
    const char* reason;
    std::function<void()> what;
  };
  const auto inside = t.api->make_event(0);
  const std::vector<broken> all{
    {"synchronize", [&] { t.api->synchronize(*t.a); }},
    {"synchronize",
     [&] {
       t.api->record(*inside, *t.a);
       t.api->synchronize(*inside);
     }},
    {"reached",
     [&] {
       t.api->record(*inside, *t.a);
       t.api->reached(*inside);
     }},
    {"reached", [&] { t.api->reached(*outside); }}, // by the recording thread
    {"a wait for an event from outside", [&] { t.api->wait(*t.a, *outside); }},
    {"allocate", [&] { CHECK(t.api->allocate(0, 64) == nullptr); }},
    {"allocate_pinned", [&] { CHECK(!t.api->allocate_pinned(64)); }},
    {"the origin does not come after all",
     [&] {
       t.let_wait(*t.b, *t.a);
       t.add(*t.b, 2, 0, 0);
     }},
  };
  for (auto& each : all) {
    CAPTURE(each.reason);
    CHECK(says(t.end_after(each.what), each.reason));
  }
  auto* const lent = t.api->allocate(0, 64);
  CHECK(says(t.end_after([&] { t.api->deallocate(0, lent); }), "deallocate"));
}

TEST_CASE("the pretend driver lets one thread begin and end a recording") {
  const bench t;
  t.api->begin_capture(*t.a);
  std::thread{[&] {
    // Other threads take memory and poll.
    auto* const data = t.api->allocate_pinned(64);
    CHECK(data);
    t.api->deallocate_pinned(data);
    t.api->synchronize(*t.b);
    CHECK(says(caught([&] { t.api->end_capture(*t.a); }),
               "end_capture by another thread"));
  }}.join();
  CHECK(
    says(caught([&] { t.api->end_capture(*t.a); }), "no recording began here"));
}

} // TEST_SUITE("kernels.cuda.pretend_capture")

} // namespace troupe::test
