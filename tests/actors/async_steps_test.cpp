// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <troupe/graph/layers.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.async_steps") {

namespace {

constexpr std::uint64_t steps = 6;

executor_options on_two_devices(const small_net& net) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.threads = 2;
  o.parameters = net.parameters();
  return o;
}

std::vector<double> waited_for(const small_net& net) {
  executor exe{net.main, on_two_devices(net)};
  std::vector<double> losses;
  for (std::uint64_t s = 0; s < steps; ++s)
    losses.push_back(exe.run(net.batch(s, 6)).loss);
  return losses;
}

feed_map bad_batch(const small_net& net) {
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[0] = 99;
  return bad;
}

std::size_t bytes_of(const feed_map& feeds) {
  std::size_t sum = 0;
  for (auto& [name, value] : feeds)
    sum += value.bytes();
  return sum;
}

} // namespace

TEST_CASE("futures give the results that one would wait for") {
  const auto net = make_mlp();
  executor exe{net.main, on_two_devices(net)};
  std::vector<std::future<step_result>> pending;
  for (std::uint64_t s = 0; s < steps; ++s)
    pending.push_back(exe.run_async(net.batch(s, 6)));
  std::vector<double> losses;
  for (auto& p : pending)
    losses.push_back(p.get().loss);
  CHECK(losses == waited_for(net));
}

TEST_CASE("functions are called in the order of steps, once each") {
  const auto net = make_mlp();
  std::vector<step_id> order;
  std::vector<double> losses;
  {
    executor exe{net.main, on_two_devices(net)};
    for (std::uint64_t s = 0; s < steps; ++s)
      exe.run_async(net.batch(s, 6), {}, [&](step_outcome outcome) {
        order.push_back(outcome.result.step); // one call after the other
        losses.push_back(outcome.result.loss);
      });
    while (exe.steps_ended() < steps)
      std::this_thread::yield();
  }
  CHECK(order == std::vector<step_id>{0, 1, 2, 3, 4, 5});
  CHECK(losses == waited_for(net));
}

TEST_CASE("steps that somebody waits for and others take turns") {
  const auto net = make_mlp();
  executor exe{net.main, on_two_devices(net)};
  std::vector<double> losses;
  for (std::uint64_t s = 0; s < steps; s += 2) {
    auto first = exe.run_async(net.batch(s, 6));
    const auto second = exe.submit(net.batch(s + 1, 6));
    const auto loss = exe.wait(second).loss;
    losses.push_back(first.get().loss);
    losses.push_back(loss);
  }
  CHECK(losses == waited_for(net));
}

TEST_CASE("nobody waits for a step that runs on its own") {
  const auto net = make_mlp();
  executor exe{net.main, on_two_devices(net)};
  auto result = exe.run_async(net.batch(0, 6));
  CHECK(caught([&] { exe.wait(0); }).code() == errc::invalid_argument);
  CHECK(result.get().step == 0);
}

TEST_CASE("a failed step gives its error, and later steps run") {
  const auto net = make_mlp();
  executor exe{net.main, on_two_devices(net)};
  auto failed = exe.run_async(bad_batch(net));
  const auto why = caught([&] { failed.get(); });
  CHECK(why.code() == errc::out_of_range);
  CHECK(why.where().step == 0);
  CHECK(exe.run_async(net.batch(0, 6)).get().loss > 0);
  CHECK(exe.run(net.batch(0, 6)).loss > 0);
}

TEST_CASE("what the function throws is dropped") {
  const auto net = make_mlp();
  executor exe{net.main, on_two_devices(net)};
  exe.run_async(net.batch(0, 6), {},
                [](step_outcome) { throw std::runtime_error("of the test"); });
  CHECK(exe.run_async(net.batch(1, 6)).get().step == 1);
}

TEST_CASE("bad feeds and a missing function are refused before a step begins") {
  const auto net = make_mlp();
  executor exe{net.main, on_two_devices(net)};
  bool called = false;
  CHECK(caught([&] {
          exe.run_async({}, {}, [&](step_outcome) { called = true; });
        }).code()
        == errc::not_found);
  CHECK(caught([&] { exe.run_async(net.batch(0, 6), {}, nullptr); }).code()
        == errc::invalid_argument);
  CHECK_FALSE(called);
  CHECK(exe.run(net.batch(0, 6)).step == 0);
}

TEST_CASE("an executor that is destroyed calls the functions of its steps") {
  const auto net = make_mlp();
  for (int round = 0; round < 20; ++round) {
    int calls = 0;
    {
      executor exe{net.main, on_two_devices(net)};
      for (std::uint64_t s = 0; s < 2; ++s)
        exe.run_async(net.batch(s, 6), {}, [&](step_outcome outcome) {
          ++calls;
          if (outcome.failure)
            CHECK(outcome.failure->code() == errc::cancelled);
        });
    }
    CHECK(calls == 2);
  }
}

TEST_CASE("borrowed feeds are not copied, and give the same losses") {
  const auto net = make_mlp();
  auto options = on_two_devices(net);
  std::vector<double> losses;
  std::size_t copied = 0;
  {
    options.borrow_feeds = true;
    executor exe{net.main, options};
    for (std::uint64_t s = 0; s < steps; ++s)
      losses.push_back(exe.run_async(net.batch(s, 6)).get().loss);
    CHECK(exe.stats().copied_feed_bytes == 0);
  }
  CHECK(losses == waited_for(net));
  options = on_two_devices(net);
  executor exe{net.main, options};
  for (std::uint64_t s = 0; s < steps; ++s) {
    const auto batch = net.batch(s, 6);
    copied += bytes_of(batch);
    exe.run(batch);
  }
  CHECK(exe.stats().copied_feed_bytes == copied);
}

TEST_CASE("feeds in memory of the application are read there, and given back "
          "when their step has ended") {
  const auto net = make_mlp();
  auto options = on_two_devices(net);
  options.borrow_feeds = true;
  executor exe{net.main, options};
  std::vector<double> losses;
  std::atomic<int> given_back{0};
  for (std::uint64_t s = 0; s < steps; ++s) {
    const auto batch = net.batch(s, 6);
    std::future<step_result> step;
    {
      feed_map lent;
      for (auto& [name, value] : batch) {
        const auto give = [&given_back] { ++given_back; };
        lent.emplace(
          name,
          value.type() == dtype::float32
            ? tensor::over(value.values<float>(), value.dims(), give)
            : tensor::over(value.values<std::int64_t>(), value.dims(), give));
      }
      step = exe.run_async(lent);
    }
    const auto feeds = static_cast<int>(batch.size());
    losses.push_back(step.get().loss);
    CHECK(given_back == feeds * static_cast<int>(s + 1));
  }
  CHECK(exe.stats().copied_feed_bytes == 0);
  CHECK(losses == waited_for(net));
}

TEST_CASE("an op that overwrites its input leaves a borrowed feed as it is") {
  graph::network net;
  auto x = net.data("x", {-1, 2});
  graph::op_desc twice;
  twice.type = "scale";
  twice.set_input("X", {"x"});
  twice.set_output("Out", {"x"}); // in place, as Paddle's programs may do
  twice.attributes.set("scale", 2.0f);
  net.main.main().ops.push_back(twice);
  auto mean = layers::mean(x);
  for (const bool borrows : {false, true}) {
    executor_options options;
    options.fetches = {mean.name()};
    options.borrow_feeds = borrows;
    executor exe{net.main, options};
    arena memory{make_host_memory_source()};
    auto value = tensor::make(memory, {2, 2}, dtype::float32);
    for (auto& v : value.values<float>())
      v = 3;
    const auto fetched = exe.run({{"x", value}}, options.fetches);
    CHECK(fetched.merged(mean.name()).values<float>()[0] == 6);
    for (auto v : value.values<float>())
      CHECK(v == 3);
  }
}

} // TEST_SUITE("actors.async_steps")
