// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/kernels/sim/sim_device.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

TEST_SUITE("actors.late_copies") {

namespace {

constexpr std::uint32_t late_us = 10'000;
const std::vector<std::int64_t> batches{13, 13, 1, 13};

/// Two simulated devices on which work called `name` takes `late_us`.
executor_options with_late(const std::string& name) {
  executor_options o;
  o.devices = parse_devices("sim:2");
  for (auto id : o.devices)
    o.hooks.device_instances.push_back(
      make_sim_device(id, {.us_of_op = {{name, late_us}}}));
  return o;
}

executor_options on_cpus() {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.lowering.share_parameters = o.lowering.gather_products =
    o.lowering.merge_in_updates = false;
  return o;
}

void set_rate(feed_map& feeds, float rate) {
  arena memory{make_host_memory_source()}; // its blocks outlive it
  auto value = tensor::make(memory, {1}, dtype::float32);
  *value.data<float>() = rate;
  feeds.insert_or_assign("learning_rate_0", value);
}

/// Parameters after two steps with fed learning rates.
std::vector<float> train_with_rates(const test::small_net& net,
                                    executor_options options) {
  options.parameters = net.parameters();
  executor exe{net.main, options};
  for (auto rate : {0.5f, 0.125f}) {
    auto feeds = net.batch(1, 8);
    set_rate(feeds, rate);
    exe.run(feeds);
  }
  exe.synchronize_parameters();
  return test::values_of(*options.parameters);
}

} // namespace

// The loss is a fetch too: each step fetches it.
TEST_CASE("steps with late copies train bit-identically to CPU devices") {
  const auto net = test::make_lenet();
  const auto cpu = test::train(net, on_cpus(), batches);
  for (const std::string late : {"feed", "fetch", "scale_loss_grad"})
    for (std::uint32_t in_flight : {1u, 2u}) {
      CAPTURE(late);
      CAPTURE(in_flight);
      auto options = with_late(late);
      options.steps_in_flight = in_flight;
      const auto sim = test::train(net, options, batches);
      CHECK(sim.losses == cpu.losses);
      CHECK(test::bit_equal(*sim.parameters, *cpu.parameters));
    }
}

TEST_CASE("a step ends when its fetches have arrived") {
  const auto net = test::make_mlp();
  const std::string weight = "fc_0.w_0";
  auto options = with_late("fetch");
  options.parameters = net.parameters();
  options.fetches = {weight};
  executor exe{net.main, options};
  const auto begin = now_ns();
  const auto fetched = exe.run(net.batch(1, 8), options.fetches).fetched;
  CHECK(now_ns() - begin >= late_us * 1000ull);
  exe.synchronize_parameters();
  const auto held =
    options.parameters->find(weight)->as_tensor().values<float>();
  for (auto& copy : fetched.at(weight)) {
    const auto values = copy.values<float>();
    CHECK(std::equal(values.begin(), values.end(), held.begin(), held.end()));
  }
}

TEST_CASE("a caller may change its feeds while they are being copied") {
  const auto net = test::make_mlp();
  const auto loss_of = [&](executor_options options, bool changes) {
    options.parameters = net.parameters();
    executor exe{net.main, options};
    auto feeds = net.batch(1, 8);
    const auto step = exe.submit(feeds);
    if (changes)
      for (auto& [name, value] : feeds)
        std::fill_n(value.raw(), value.bytes(), std::byte{0});
    return exe.wait(step).loss;
  };
  CHECK(loss_of(with_late("feed"), true) == loss_of(on_cpus(), false));
}

TEST_CASE("submit returns after a fed persistable variable has arrived") {
  const auto net = test::make_mlp();
  CHECK(train_with_rates(net, with_late("feed"))
        == train_with_rates(net, on_cpus()));
  auto options = with_late("feed");
  options.parameters = net.parameters();
  executor exe{net.main, options};
  auto feeds = net.batch(1, 8);
  set_rate(feeds, 0.25f);
  const auto step = exe.submit(feeds);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto* held = exe.parameters().replica(d).find("learning_rate_0");
    CHECK(*held->as_tensor().data<float>() == 0.25f);
  }
  exe.wait(step);
}

} // TEST_SUITE("actors.late_copies")

} // namespace troupe
