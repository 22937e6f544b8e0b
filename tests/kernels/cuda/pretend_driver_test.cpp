// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/pretend_driver.hpp>
#include <support/caught.hpp>

#include <troupe/kernels/cuda/bodies/all.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>

namespace troupe::test {

TEST_SUITE("kernels.cuda.pretend_driver") {

namespace {

using namespace cuda;

/// One number on a GPU, and pinned memory that it is copied to.
struct number {
  explicit number(pretend_driver& on) : api(on) {}
  ~number() {
    api.deallocate(0, gpu);
    api.deallocate_pinned(host);
  }

  void set(gpu_queue& on, float value) {
    const fill<float>::arguments a{reinterpret_cast<float*>(gpu), 1, value};
    api.launch(on, {all_bodies::number<fill<float>>()}, {1, 1}, &a, sizeof a);
  }
  void fetch(gpu_queue& on) { api.copy(on, host, gpu, sizeof(float)); }
  float fetched() const { return *reinterpret_cast<const float*>(host); }

  pretend_driver& api;
  std::byte* gpu = api.allocate(0, sizeof(float));
  std::byte* host = api.allocate_pinned(sizeof(float));
};

/// A queue writes 7, and another one reads the number. Returns what it read.
float pass_on(pretend_driver& api, bool waits) {
  number n{api};
  const auto writes = api.make_queue(0), reads = api.make_queue(0);
  const auto written = api.make_event(0);
  n.set(*writes, 7);
  api.record(*written, *writes);
  if (waits)
    api.wait(*reads, *written);
  n.fetch(*reads);
  api.synchronize(*reads);
  api.synchronize(*writes);
  return n.fetched();
}

} // namespace

TEST_CASE("a queue runs in order, and later than it is filled") {
  const auto api = make_pretend_driver();
  number n{*api};
  const auto q = api->make_queue(0);
  for (int i = 0; i < 100; ++i)
    n.set(*q, static_cast<float>(i));
  n.fetch(*q);
  api->synchronize(*q);
  CHECK(n.fetched() == 99);
}

TEST_CASE("a queue that waits for an event reads what came before it") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    CHECK(pass_on(*make_pretend_driver({.seed = seed}), true) == 7);
}

TEST_CASE("some seed finds a queue that does not wait") {
  bool found = false;
  for (std::uint64_t seed = 1; seed <= 100 && !found; ++seed)
    found = pass_on(*make_pretend_driver({.seed = seed}), false) != 7;
  CHECK(found);
}

TEST_CASE("of waits for the same work, only those that order it count") {
  std::uint64_t most = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto api = make_pretend_driver({.seed = seed});
    number n{*api};
    const auto writes = api->make_queue(0), reads = api->make_queue(0);
    const auto early = api->make_event(0), late = api->make_event(0);
    api->record(*early, *writes);
    n.set(*writes, 7);
    api->record(*late, *writes);
    api->set(mishap::wait_forgotten, ~std::uint64_t{0}); // counts them
    for (const auto* event : {early.get(), late.get(), late.get()})
      api->wait(*reads, *event);
    n.fetch(*reads);
    api->wait(*reads, *early);
    n.fetch(*reads);
    most = std::max(most, api->calls());
    api->synchronize(*reads);
    CHECK(n.fetched() == 7);
  }
  CHECK(most == 1); // none if `writes` has run already
}

TEST_CASE("an event that was recorded again stands for the later point") {
  const auto api = make_pretend_driver({.seed = 5});
  number n{*api};
  const auto q = api->make_queue(0);
  const auto e = api->make_event(0);
  CHECK(api->reached(*e)); // never recorded
  n.set(*q, 1);
  api->record(*e, *q);
  n.set(*q, 2);
  n.fetch(*q);
  api->record(*e, *q);
  api->synchronize(*e);
  CHECK(api->reached(*e));
  CHECK(n.fetched() == 2);
}

TEST_CASE("memory of a pretend GPU is limited, and NaN at first") {
  const auto api = make_pretend_driver({.bytes = 1024});
  {
    number n{*api};
    CHECK(api->allocate(0, 1024) == nullptr);
    CHECK(api->allocated(0) == sizeof(float));
    const auto q = api->make_queue(0);
    n.fetch(*q);
    api->synchronize(*q);
    CHECK(std::isnan(n.fetched()));
  }
  CHECK(api->allocated(0) == 0);
}

TEST_CASE("a call that fails queues nothing, and the next one works") {
  const auto api = make_pretend_driver();
  number n{*api};
  const auto q = api->make_queue(0);
  n.set(*q, 3);
  api->set(mishap::call_fails, 0);
  CHECK(caught([&] { n.set(*q, 4); }).code() == errc::kernel_failure);
  n.fetch(*q);
  api->synchronize(*q);
  CHECK(n.fetched() == 3);
}

TEST_CASE("after a kernel has failed, all calls fail") {
  const auto api = make_pretend_driver();
  number n{*api};
  const auto q = api->make_queue(0);
  const auto e = api->make_event(0);
  api->set(mishap::kernel_fails, 0);
  n.set(*q, 3);
  const auto fails = [&] { api->synchronize(*q); };
  CHECK(says(caught(fails), "the device is lost"));
  CHECK(caught([&] { n.set(*q, 3); }).code() == errc::kernel_failure);
  CHECK(caught([&] { api->record(*e, *q); }).code() == errc::kernel_failure);
}

TEST_CASE("products are those of transposed and of plain matrices") {
  const auto api = make_pretend_driver();
  const auto q = api->make_queue(0);
  const std::array<float, 6> a{1, 2, 3, 4, 5, 6}; // [2, 3], or [3, 2]
  const std::array<float, 3> b{1, 10, 100};
  std::array<float, 2> c{};
  const auto product = [&](bool transposed, bool adds) {
    api->multiply(
      *q, {2, 1, 3, a.data(), b.data(), c.data(), transposed, false, adds});
    api->synchronize(*q);
    return c;
  };
  CHECK(product(false, false) == std::array<float, 2>{321, 654});
  CHECK(product(true, false) == std::array<float, 2>{531, 642});
  CHECK(product(false, true) == std::array<float, 2>{852, 1296});
}

TEST_CASE("several products use a factor again whose step is 0") {
  const auto api = make_pretend_driver();
  const auto q = api->make_queue(0);
  const std::array<float, 2> a{1, 2};         // two of [1, 1]
  const std::array<float, 2> b{10, 100};      // one of [1, 2]
  std::array<float, 5> c{-1, -1, -1, -1, -1}; // two of [1, 2], 3 apart
  matrix_product p{1, 2, 1, a.data(), b.data(), c.data()};
  p.count = 2;
  p.a_step = 1;
  p.c_step = 3;
  api->multiply(*q, p);
  api->synchronize(*q);
  CHECK(c == std::array<float, 5>{10, 100, -1, 20, 200});
}

} // TEST_SUITE("kernels.cuda.pretend_driver")

} // namespace troupe::test
