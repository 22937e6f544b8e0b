// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/cuda_rig.hpp>
#include <kernels/cuda/stream_work.hpp>
#include <support/caught.hpp>

#include <troupe/kernels/step_recording.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cuda.recording") {

namespace {

using cuda::cuda_stream;

/// A device with two streams. Its step computes y = 2 x on the first stream,
/// z = 3 y on the second one, and y = z + 0 on the first one.
struct two_streams {
  explicit two_streams(std::shared_ptr<cuda::driver> api,
                       wait_mode waits_by = wait_mode::event)
    : on(make_cuda_devices(std::move(api), 1, {waits_by}).front()),
      a(on->make_stream({.name = "a"})), b(on->make_stream({.name = "b"})),
      x(on->to_device(vector_of(64, 1))), y(on->to_device(vector_of(64, 0))),
      z(on->to_device(vector_of(64, 0))) {}

  /// Launches work whose completion nobody wants to know. Returns its position.
  static ticket launch(stream& where, std::function<void(cuda_stream&)> what) {
    test_work w{std::move(what)};
    return where.launch(w, {.tell_completion = false}).position;
  }
  static void launch_and_wait(stream& where,
                              std::function<void(cuda_stream&)> what) {
    test_work w{std::move(what)};
    where.launch(w, {});
    w.wait();
  }

  void step() {
    const auto first =
      launch(*a, [&](cuda_stream& q) { scale_to(q, x, y, 2); });
    b->wait(*a, first);
    const auto second =
      launch(*b, [&](cuda_stream& q) { scale_to(q, y, z, 3); });
    a->wait(*b, second);
    launch(*a, [&](cuda_stream& q) { scale_to(q, z, y, 1); });
  }
  std::unique_ptr<step_recording> record() {
    const std::vector<stream*> both{a.get(), b.get()};
    return on->record(both);
  }
  std::unique_ptr<step_recording> record_step() {
    auto made = record();
    step();
    made->finish({});
    return made;
  }
  void run(step_recording& what, step_id number = 0) {
    launch_and_wait(*a, [&](cuda_stream&) { what.launch(number); });
  }

  std::shared_ptr<device> on;
  std::unique_ptr<stream> a, b;
  tensor x, y, z;
};

constexpr auto both_modes = {wait_mode::event, wait_mode::block};

} // namespace

TEST_CASE("recorded work runs when it is launched, each time, and not before") {
  for (auto waits_by : both_modes)
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(seed);
      two_streams t{make_test_driver(seed), waits_by};
      const auto recorded = t.record_step();
      CHECK(first_of(*t.on, t.y) == 0);
      t.run(*recorded);
      CHECK(first_of(*t.on, t.y) == 6);
      two_streams::launch_and_wait(
        *t.a, [&](cuda_stream& q) { fill_with(q, t.x, 5); });
      t.run(*recorded);
      t.run(*recorded);
      CHECK(first_of(*t.on, t.y) == 30);
      t.step(); // streams work as before
      t.a->synchronize(t.a->position());
      CHECK(first_of(*t.on, t.z) == 30);
    }
}

TEST_CASE("values of recorded work are in memory that nobody else gets") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    two_streams t{make_test_driver(seed)};
    const auto recorded = t.record();
    two_streams::launch(*t.a, [&](cuda_stream& q) {
      auto between = tensor::make(t.on->memory(), {64}, dtype::float32);
      scale_to(q, t.x, between, 7);
      scale_to(q, between, t.y, 1);
    });
    recorded->finish({});
    const auto live = t.on->memory().live_bytes();
    std::vector<tensor> others;
    for (int i = 0; i < 20; ++i)
      others.push_back(t.on->to_device(vector_of(64, 1)));
    t.run(*recorded);
    CHECK(first_of(*t.on, t.y) == 7);
    for (auto& other : others)
      CHECK(first_of(*t.on, other) == 1);
    others.clear();
    CHECK(t.on->memory().live_bytes() == live);
  }
}

TEST_CASE("what was fetched in recorded work has a source for each launch") {
  two_streams t{make_test_driver()};
  arena host{make_host_memory_source()};
  auto recorded = t.record();
  tensor copied, again;
  two_streams::launch(*t.a, [&](cuda_stream& q) {
    scale_to(q, t.x, t.y, 2);
    copied = t.on->to_host(t.y, host, q);
    scale_to(q, t.x, t.y, 3); // later than the copy
  });
  recorded->finish({});
  CHECK(copied.dims() == t.y.dims());
  t.run(*recorded);
  CHECK(first_of(*t.on, recorded->source_of(copied)) == 2);
  CHECK_FALSE(recorded->source_of(t.y));
  recorded.reset();
}

TEST_CASE("copies to the device in recorded work are copied at each launch") {
  two_streams t{make_test_driver()};
  const auto recorded = t.record();
  two_streams::launch(*t.a, [&](cuda_stream& q) {
    auto value = vector_of(64, 9);
    const auto there = t.on->to_device(value, q);
    std::ranges::fill(value.values<float>(), 0.0f);
    scale_to(q, there, t.y, 1);
  });
  recorded->finish({});
  t.run(*recorded);
  CHECK(first_of(*t.on, t.y) == 9);
}

TEST_CASE("copies before and after recorded work are made at each launch") {
  two_streams t{make_test_driver()};
  auto other = t.on->to_device(vector_of(64, 4));
  auto result = t.on->to_device(vector_of(64, 0));
  const auto recorded = t.record();
  t.step();
  std::vector<step_recording::value_copy> last{{t.y, result}};
  recorded->finish(last);
  two_streams::launch_and_wait(*t.a, [&](cuda_stream&) {
    step_recording::value_copy first{other, t.x};
    recorded->copy(first);
    recorded->launch(0);
  });
  CHECK(first_of(*t.on, result) == 24);
}

TEST_CASE("a random op in recorded work takes the number of each launch") {
  two_streams t{make_test_driver()};
  auto mask = tensor::make(t.on->memory(), {64}, dtype::uint8);
  const auto drop = [&](cuda_stream& q, std::uint32_t step) {
    q.run_for_each<cuda::drop_out>(64, {t.x.data<float>(),
                                        t.y.data<float>(),
                                        mask.data<std::uint8_t>(),
                                        64,
                                        0,
                                        {17, 3, step},
                                        q.step_number(),
                                        0.5f,
                                        2});
  };
  arena host{make_host_memory_source()};
  const auto values = [&] {
    const auto there = t.on->to_host(t.y, host);
    const auto all = there.values<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  std::vector<std::vector<float>> wanted;
  for (std::uint32_t step : {5u, 6u}) {
    two_streams::launch_and_wait(*t.a, [&](cuda_stream& q) { drop(q, step); });
    wanted.push_back(values());
  }
  REQUIRE(wanted[0] != wanted[1]);
  const auto recorded = t.record();
  two_streams::launch(*t.a, [&](cuda_stream& q) { drop(q, 99); });
  recorded->finish({});
  t.run(*recorded, 5);
  CHECK(values() == wanted[0]);
  t.run(*recorded, 6);
  CHECK(values() == wanted[1]);
}

TEST_CASE("recorded work cannot wait for a number, and others follow") {
  two_streams t{make_test_driver()};
  {
    const auto recorded = t.record();
    const auto e = caught([&] {
      two_streams::launch(*t.a, [&](cuda_stream& q) {
        float number = 0;
        q.read(&number, t.x.raw(), sizeof number);
      });
    });
    CHECK(e.code() == errc::unsupported_op);
    CHECK(says(e, "the host waits for a number"));
  }
  t.step();
  t.a->synchronize(t.a->position());
  CHECK(first_of(*t.on, t.y) == 6);
}

TEST_CASE("other streams poll, wait and take memory while work is recorded") {
  for (auto waits_by : both_modes) {
    two_streams t{make_test_driver(), waits_by};
    const auto other = t.on->make_stream({.name = "other"});
    auto v = t.on->to_device(vector_of(64, 1));
    const auto recorded = t.record();
    t.step();
    const auto position = two_streams::launch(
      *other, [&](cuda_stream& q) { scale_to(q, t.x, v, 4); });
    other->finished(position);
    other->wait(*t.a, t.a->position());
    CHECK(t.a->finished(t.a->position()));
    two_streams::launch_and_wait(*other, [&](cuda_stream& q) {
      auto large = tensor::make(t.on->memory(), {1 << 16}, dtype::float32);
      fill_with(q, large, 1);
    });
    CHECK(first_of(*t.on, v) == 4);
    recorded->finish({});
    t.run(*recorded);
    CHECK(first_of(*t.on, t.y) == 6);
  }
}

TEST_CASE("a call of the driver that fails spoils a recording, and no more") {
  if (tests_use_gpu())
    return; // a GPU's driver fails no call on request
  std::uint64_t failures = 0;
  for (std::uint64_t k = 0;; ++k) {
    CAPTURE(k);
    const auto api = make_pretend_driver({.seed = k + 1});
    two_streams t{api};
    api->set(mishap::call_fails, k);
    bool is_done = false;
    try {
      const auto recorded = t.record_step();
      t.run(*recorded);
      is_done = true;
    } catch (const error&) {
      ++failures;
    }
    const auto calls = api->calls();
    api->set(mishap::none, 0);
    // Also if the failed call could be done without.
    if (is_done)
      CHECK(first_of(*t.on, t.y) == 6);
    t.step();
    t.a->synchronize(t.a->position());
    CHECK(first_of(*t.on, t.y) == 6);
    const auto again = t.record_step();
    two_streams::launch_and_wait(*t.a,
                                 [&](cuda_stream& q) { fill_with(q, t.x, 2); });
    t.run(*again);
    CHECK(first_of(*t.on, t.y) == 12);
    if (calls <= k)
      break;
  }
  CHECK(failures > 15);
}

TEST_CASE("a recorded wait that is left out is found") {
  if (tests_use_gpu())
    return;
  std::vector<bool> found;
  for (std::uint64_t wait = 0; wait < 2; ++wait) {
    found.push_back(false);
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const auto api = make_pretend_driver({.seed = seed});
      two_streams t{api};
      const auto recorded = t.record();
      api->set(mishap::wait_forgotten, wait);
      t.step();
      api->set(mishap::none, 0);
      recorded->finish({});
      t.run(*recorded);
      found.back() = found.back() || first_of(*t.on, t.y) != 6;
    }
  }
  CHECK(found == std::vector<bool>{true, true});
}

} // TEST_SUITE("kernels.cuda.recording")

} // namespace troupe::test
