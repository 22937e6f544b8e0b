// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/kernels/sim/sim_device.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using graph::merge_strategy;
using test::caught;
using test::says;

TEST_SUITE("actors.backend") {

namespace {

const std::vector<device_id> cpu_and_sim{{device_kind::cpu, 0},
                                         {device_kind::sim, 0}};

const std::vector<std::int64_t> batches(4, 13);

executor_options on(std::vector<device_id> devices, merge_strategy strategy) {
  executor_options o;
  o.devices = std::move(devices);
  o.strategy = strategy;
  return o;
}

/// Options without the passes that need devices of one kind.
executor_options on_two_cpus(merge_strategy strategy) {
  auto o = on(parse_devices("cpu:2"), strategy);
  o.lowering.share_parameters = o.lowering.gather_products =
    o.lowering.merge_in_updates = false;
  return o;
}

} // namespace

TEST_CASE("devices are made in the order of their ids") {
  const auto devices = make_devices(parse_devices("cpu:2"));
  REQUIRE(devices.size() == 2);
  CHECK(devices[0]->id() == device_id{device_kind::cpu, 0});
  CHECK(devices[1]->id() == device_id{device_kind::cpu, 1});
  CHECK(&devices[0]->memory() != &devices[1]->memory());
}

TEST_CASE("an error names devices that are not there, and what is missing") {
  const std::vector<device_id> wanted{{device_kind::cuda, 1}};
  const auto cuda = caught([&] { make_devices(wanted); });
  CHECK(cuda.code() == errc::not_found);
  CHECK(says(cuda, "no CUDA devices: "));
  CHECK(cuda.where().device == "cuda:1");
}

TEST_CASE("devices share memory only if all are CPU devices") {
  CHECK(share_memory(parse_devices("cpu:3")));
  CHECK_FALSE(share_memory(parse_devices("sim:2")));
  CHECK_FALSE(share_memory(cpu_and_sim));
  CHECK_FALSE(share_memory(parse_devices("cuda:0,cuda:1")));
}

TEST_CASE("kernels are provided only for the given kinds of device") {
  const auto kernels = kernels_for(cpu_and_sim);
  CHECK(kernels.op_types(device_kind::cpu)
        == kernels.op_types(device_kind::sim));
  CHECK(kernels.has("conv2d", device_kind::sim));
  CHECK_FALSE(
    kernels_for(parse_devices("cpu")).has("conv2d", device_kind::sim));
}

TEST_CASE("devices of one or several kinds form a group for collectives") {
  for (const auto& ids :
       {parse_devices("cpu:2"), parse_devices("sim:2"), cpu_and_sim}) {
    CAPTURE(to_string(ids.back()));
    const auto devices = make_devices(ids);
    const std::vector<device*> ranks{devices[0].get(), devices[1].get()};
    const auto group = make_group(ranks);
    REQUIRE(group.size() == 2);
    CHECK(group[1]->rank() == 1);
    CHECK(group[1]->size() == 2);
  }
  CHECK(caught([] { make_group({}); }).code() == errc::invalid_argument);
}

TEST_CASE("a lowering pass is disabled if its ops have no kernel") {
  const auto ids = parse_devices("cpu:2");
  const graph::lowering_options wanted;
  CHECK(lowering_for(ids, wanted, kernels_for(ids)).fuse_batch_norms);
  kernel_table few;
  few.add(
    "mul", device_kind::cpu, +[](kernel_context&) {});
  const auto possible = lowering_for(ids, wanted, few);
  CHECK_FALSE(possible.fuse_batch_norms);
  CHECK_FALSE(possible.merge_in_updates);
  CHECK(possible.share_parameters);
  CHECK(possible.write_in_place);
}

TEST_CASE("passes that need shared memory are disabled for mixed devices") {
  const auto possible = lowering_for(cpu_and_sim, {}, kernels_for(cpu_and_sim));
  CHECK_FALSE(possible.share_parameters);
  CHECK_FALSE(possible.gather_products);
  CHECK_FALSE(possible.merge_in_updates);
  CHECK(possible.fuse_batch_norms);
}

TEST_CASE("mixed devices train bit-identically to devices of one kind") {
  for (const auto& net : {test::make_mlp(), test::make_lenet(),
                          test::make_word2vec(), test::make_resnet(true)})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::replicate}) {
      CAPTURE(net.name);
      CAPTURE(to_string(strategy));
      const auto one = test::train(net, on_two_cpus(strategy), batches);
      const auto two = test::train(net, on(cpu_and_sim, strategy), batches);
      CHECK(two.losses == one.losses);
      CHECK(test::bit_equal(*two.parameters, *one.parameters));
    }
}

TEST_CASE("simulated devices train bit-identically to CPU devices") {
  const auto net = test::make_lenet();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    CAPTURE(to_string(strategy));
    const auto cpu = test::train(net, on_two_cpus(strategy), batches);
    const auto sim =
      test::train(net, on(parse_devices("sim:2"), strategy), batches);
    CHECK(sim.losses == cpu.losses);
    CHECK(test::bit_equal(*sim.parameters, *cpu.parameters));
  }
}

TEST_CASE("parameters reside in the memory of the devices that train them") {
  const auto net = test::make_mlp();
  const auto sim = test::train(
    net, on(parse_devices("sim:2"), merge_strategy::all_reduce), batches);
  arena host{make_host_memory_source()};
  for (auto& name : sim.parameters->names()) {
    CAPTURE(name);
    const auto& held = sim.parameters->find(name)->as_tensor();
    CHECK_FALSE(held.memory().is_host());
    CHECK(sim.parameters->to_host(held, host).memory().is_host());
  }
}

TEST_CASE("moving training between kinds of device does not change losses") {
  const auto net = test::make_mlp();
  const auto train_in_turn = [&](const std::vector<std::string>& devices) {
    auto parameters = net.parameters();
    std::vector<double> losses;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      auto options = on(parse_devices(devices[i]), merge_strategy::all_reduce);
      options.lowering.share_parameters = options.lowering.gather_products =
        options.lowering.merge_in_updates = false;
      options.parameters = parameters;
      parameters->drop_replicas();
      executor exe{net.main, options};
      losses.push_back(exe.run(net.batch(i, 8)).loss);
      exe.synchronize_parameters();
    }
    return losses;
  };
  CHECK(train_in_turn({"sim:2", "cpu:2", "sim:2", "sim:2", "cpu:2"})
        == train_in_turn({"cpu:2", "cpu:2", "cpu:2", "cpu:2", "cpu:2"}));
}

TEST_CASE("a variable is fetched from devices of two kinds") {
  const auto net = test::make_mlp();
  auto options = on(cpu_and_sim, merge_strategy::all_reduce);
  options.parameters = net.parameters();
  options.loss = net.loss;
  const std::string weight = "fc_0.w_0";
  options.fetches = {weight};
  executor exe{net.main, options};
  const auto fetched = exe.run(net.batch(1, 8), options.fetches).fetched;
  const auto& copies = fetched.at(weight);
  REQUIRE(copies.size() == 2);
  const auto a = copies[0].values<float>(), b = copies[1].values<float>();
  CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST_CASE("a simulated launch takes at least the time given in its table") {
  constexpr std::uint32_t wanted_us = 20'000;
  const auto net = test::make_mlp();
  auto options = on({{device_kind::sim, 0}}, merge_strategy::all_reduce);
  options.parameters = net.parameters();
  options.hooks.device_instances = {
    make_sim_device({device_kind::sim, 0}, {.us_of_op = {{"mul", wanted_us}}})};
  executor exe{net.main, options};
  const auto begin = now_ns();
  exe.run(net.batch(1, 4));
  CHECK(now_ns() - begin >= wanted_us * 1000ull);
}

} // TEST_SUITE("actors.backend")

} // namespace troupe
