// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/cuda_rig.hpp>
#include <kernels/cuda/stream_work.hpp>
#include <support/caught.hpp>

#include <troupe/kernels/cuda/cuda_stream.hpp>

#include <doctest/doctest.h>

#include <memory>

namespace troupe::test {

TEST_SUITE("kernels.cuda.stream") {

namespace {

using cuda::cuda_stream;

/// The memory of a value that one stream has returned is used by another one.
/// Returns what the first stream's kernel read from it.
float read_before_reuse(std::uint64_t seed, wait_mode waits_by) {
  const auto on =
    make_cuda_devices(make_test_driver(seed), 1, {waits_by}).front();
  const auto a = on->make_stream({.name = "a"}),
             b = on->make_stream({.name = "b"});
  auto out = tensor::make(on->memory(), {4096}, dtype::float32);
  test_work reads{[&](cuda_stream& q) {
    auto value = tensor::make(on->memory(), {4096}, dtype::float32);
    fill_with(q, value, 1);
    for (int i = 0; i < 5; ++i)
      q.run_for_each<cuda::scale>(
        4096, {value.data<float>(), out.data<float>(), 4096, 1, 0});
  }};
  std::byte* reused = nullptr;
  test_work writes{[&](cuda_stream& q) {
    auto value = tensor::make(on->memory(), {4096}, dtype::float32);
    reused = value.raw();
    fill_with(q, value, 2);
  }};
  a->launch(reads, {});
  b->launch(writes, {});
  reads.wait();
  writes.wait();
  CHECK(reused != nullptr);
  return first_of(*on, out);
}

} // namespace

TEST_CASE("values come back from a CUDA device as they went there") {
  const auto on = make_cuda_devices(make_test_driver(), 1).front();
  arena host{make_host_memory_source()};
  const auto there = on->to_device(vector_of(1000, 2.5f));
  CHECK_FALSE(there.memory().is_host());
  const auto back = on->to_host(there, host);
  CHECK(back.memory().is_host());
  for (auto v : back.values<float>())
    REQUIRE(v == 2.5f);
  CHECK_FALSE(on->to_device(tensor{}));
  CHECK(on->to_device(vector_of(0, 0)).numel() == 0);
}

TEST_CASE("a host value may change once it has been given to a CUDA device") {
  const auto on = make_cuda_devices(make_test_driver(), 1).front();
  const auto q = on->make_stream({.name = "feed"});
  auto value = vector_of(100, 1);
  const auto there = on->to_device(value, *q);
  std::ranges::fill(value.values<float>(), 2.0f);
  q->synchronize(q->position());
  CHECK(first_of(*on, there) == 1);
}

TEST_CASE("a stream that reads a number waits for it") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto on = make_cuda_devices(make_test_driver(seed), 1).front();
    const auto q = on->make_stream({.name = "a"});
    auto x = tensor::make(on->memory(), {8}, dtype::float32);
    float number = 0;
    test_work w{[&](cuda_stream& queue) {
      fill_with(queue, x, 3);
      queue.read(&number, x.raw() + sizeof number, sizeof number);
    }};
    q->launch(w, {});
    CHECK(number == 3);
    w.wait();
  }
}

TEST_CASE("a stream that waits for a ticket reads what was computed before") {
  for (auto waits_by : {wait_mode::event, wait_mode::block})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto on =
        make_cuda_devices(make_test_driver(seed), 1, {waits_by}).front();
      const auto a = on->make_stream({.name = "a"}),
                 b = on->make_stream({.name = "b"});
      auto x = tensor::make(on->memory(), {8}, dtype::float32);
      auto y = tensor::make(on->memory(), {8}, dtype::float32);
      test_work first{[&](cuda_stream& q) { fill_with(q, x, 3); }};
      test_work second{[&](cuda_stream& q) {
        q.run_for_each<cuda::scale>(
          8, {x.data<float>(), y.data<float>(), 8, 2, 0});
      }};
      const auto ticket = a->launch(first, {.tell_completion = false}).position;
      b->wait(*a, ticket);
      b->launch(second, {});
      second.wait();
      CHECK(first_of(*on, y) == 6);
      CHECK(a->finished(ticket));
    }
}

TEST_CASE("memory is used again only after the stream that returned it") {
  for (auto waits_by : {wait_mode::event, wait_mode::block})
    for (std::uint64_t seed = 1; seed <= 30; ++seed)
      CHECK(read_before_reuse(seed, waits_by) == 1);
}

TEST_CASE("memory that one stream returns and takes again needs no wait") {
  if (tests_use_gpu())
    return; // a GPU's driver does not count waits
  const auto api = make_pretend_driver();
  const auto on = make_cuda_devices(api, 1).front();
  const auto q = on->make_stream({.name = "a"});
  const auto other = on->make_stream({.name = "b"});
  for (int i = 0; i < 10; ++i) {
    test_work w{[&](cuda_stream& on_queue) {
      auto value = tensor::make(on->memory(), {4096}, dtype::float32);
      fill_with(on_queue, value, 1);
    }};
    q->launch(w, {});
    w.wait();
  }
  CHECK(api->waits() == 0);
}

TEST_CASE(
  "a CUDA device counts live memory, and names itself when it is used up") {
  const auto on =
    make_cuda_devices(make_pretend_driver({.bytes = 1 << 20}), 1).front();
  auto half = tensor::make(on->memory(), {1 << 17}, dtype::float32);
  CHECK(on->memory().live_bytes() >= half.bytes());
  const auto e =
    caught([&] { tensor::make(on->memory(), {1 << 18}, dtype::float32); });
  CHECK(e.code() == errc::out_of_memory);
  CHECK(says(e, "cuda:0"));
  CHECK(says(e, "no memory for 1048576 bytes"));
  half = {};
  CHECK(tensor::make(on->memory(), {1 << 16}, dtype::float32).bytes() > 0);
}

TEST_CASE("work that throws fails its launch, and the stream works on") {
  const auto on = make_cuda_devices(make_test_driver(), 1).front();
  const auto q = on->make_stream({.name = "a"});
  test_work bad{
    [](cuda_stream&) { throw error(errc::kernel_failure, "no such thing"); }};
  CHECK(says(caught([&] { q->launch(bad, {}); }), "no such thing"));
  test_work good{[](cuda_stream&) {}};
  q->launch(good, {});
  good.wait();
}

TEST_CASE("a wait that the driver refuses blocks the thread instead") {
  if (tests_use_gpu())
    return;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto api = make_pretend_driver({.seed = seed});
    const auto on = make_cuda_devices(api, 1).front();
    const auto a = on->make_stream({.name = "a"}),
               b = on->make_stream({.name = "b"});
    auto x = tensor::make(on->memory(), {8}, dtype::float32);
    auto y = tensor::make(on->memory(), {8}, dtype::float32);
    test_work first{[&](cuda_stream& q) { fill_with(q, x, 3); }};
    test_work second{[&](cuda_stream& q) {
      q.run_for_each<cuda::scale>(8,
                                  {x.data<float>(), y.data<float>(), 8, 2, 0});
    }};
    const auto ticket = a->launch(first, {.tell_completion = false}).position;
    api->set(mishap::call_fails, 0);
    b->wait(*a, ticket);
    api->set(mishap::none, 0);
    b->launch(second, {});
    second.wait();
    CHECK(first_of(*on, y) == 6);
  }
}

TEST_CASE("waiting for a device that is lost ends") {
  if (tests_use_gpu())
    return;
  const auto api = make_pretend_driver();
  const auto on = make_cuda_devices(api, 1).front();
  const auto a = on->make_stream({.name = "a"}),
             b = on->make_stream({.name = "b"});
  test_work first{[](cuda_stream&) {}}, second{[](cuda_stream&) {}},
    third{[](cuda_stream&) {}};
  const auto ticket = a->launch(first, {.tell_completion = false}).position;
  api->set(mishap::device_lost, 0);
  b->wait(*a, ticket);
  CHECK(says(caught([&] { b->launch(second, {}); }), "the device is lost"));
  api->set(mishap::none, 0);
  b->launch(third, {});
  third.wait();
}

TEST_CASE("a kernel that fails on the GPU is told to whoever waits") {
  if (tests_use_gpu())
    return;
  const auto api = make_pretend_driver();
  const auto on = make_cuda_devices(api, 1).front();
  const auto q = on->make_stream({.name = "a"});
  auto x = tensor::make(on->memory(), {8}, dtype::float32);
  test_work w{[&](cuda_stream& queue) { fill_with(queue, x, 1); }};
  api->set(mishap::kernel_fails, 0);
  const auto e = caught([&] {
    q->launch(w, {}); // the kernel may fail before this returns
    w.wait();
  });
  CHECK(says(e, "the device is lost"));
}

TEST_CASE("a device that the machine lacks is refused by number") {
  const auto e = caught([] {
    cuda::make_cuda_device(make_pretend_driver({.gpus = 1}),
                           {device_kind::cuda, 3});
  });
  CHECK(e.code() == errc::not_found);
  CHECK(says(e, "no GPU 3: the machine has 1"));
  CHECK(e.where().device == "cuda:3");
}

} // TEST_SUITE("kernels.cuda.stream")

} // namespace troupe::test
