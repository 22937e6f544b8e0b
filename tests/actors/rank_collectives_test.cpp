// SPDX-License-Identifier: Apache-2.0

// Collectives with a handle per device compute the same as collectives with one
// handle for all devices.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include "late_device.hpp"
#include "refusing_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.rank_collectives") {

namespace {

executor_options on(int devices, merge_strategy strategy, bool ranks) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  o.lowering.gather_products = o.lowering.share_parameters =
    o.lowering.merge_in_updates = false;
  o.hooks.rank_collectives = ranks;
  return o;
}

// Some leave devices without samples.
const std::vector<std::int64_t> batches{7, 2, 1, 8, 3, 6};

} // namespace

TEST_CASE("collectives per rank train bit-identically to joint collectives") {
  for (auto& net : {make_lenet(), make_word2vec(), make_resnet(true)})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::replicate})
      for (int devices : {2, 3}) {
        CAPTURE(net.name);
        CAPTURE(to_string(strategy));
        const auto joint = train(net, on(devices, strategy, false), batches);
        for (std::uint32_t in_flight : {1u, 3u}) {
          auto options = on(devices, strategy, true);
          options.steps_in_flight = in_flight;
          const auto ranks = train(net, options, batches);
          CHECK(ranks.losses == joint.losses);
          CHECK(bit_equal(*ranks.parameters, *joint.parameters));
          CHECK(bit_equal(ranks.parameters->replica(1),
                          joint.parameters->replica(1)));
        }
      }
}

TEST_CASE("message order and late devices do not change rank collectives") {
  const auto net = make_mlp();
  const auto joint =
    train(net, on(2, merge_strategy::all_reduce, false), batches);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    auto options = on(2, merge_strategy::all_reduce, true);
    options.hooks.shuffle.emplace().seed = seed;
    if (seed % 2 == 0)
      for (int d = 0; d < 2; ++d)
        options.hooks.device_instances.push_back(make_late_device(d, seed, 20));
    const auto ranks = train(net, options, batches);
    CHECK(ranks.losses == joint.losses);
    CHECK(bit_equal(*ranks.parameters, *joint.parameters));
  }
}

TEST_CASE("a step that fails on one device ends on all, and the next runs") {
  const auto net = make_mlp();
  auto options = on(2, merge_strategy::reduce, true);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[3] = 99; // of device 1
  for (int round = 0; round < 20; ++round) {
    CHECK(caught([&] { exe.run(bad); }).code() == errc::out_of_range);
    CHECK_NOTHROW(exe.run(net.batch(1, 4)));
  }
}

TEST_CASE("a rank whose stream refuses a launch fails the step of all ranks") {
  const auto net = make_mlp();
  const auto check = [&](bool is_late, merge_strategy strategy,
                         const char* stream, int skipped) {
    CAPTURE(is_late);
    CAPTURE(to_string(strategy));
    CAPTURE(std::string{stream});
    CAPTURE(skipped);
    auto options = on(2, strategy, true);
    options.parameters = net.parameters();
    std::shared_ptr<device> first = make_cpu_device(0),
                            second = make_cpu_device(1);
    if (is_late) {
      first = make_late_device(0, 4, 20);
      second = make_late_device(1, 3, 20);
    }
    const auto refusing = std::make_shared<refusing_device>(second);
    options.hooks.device_instances = {first, refusing};
    executor exe{net.main, options};
    for (int round = 0; round < 3; ++round) {
      CHECK_NOTHROW(exe.run(net.batch(0, 4)));
      refusing->refuse_launch(stream, skipped);
      const auto e = caught([&] { exe.run(net.batch(1, 4)); });
      CHECK(e.code() == errc::out_of_memory);
      CHECK(e.message() == "no memory for a launch");
      CHECK(e.where().device == "cpu:1");
    }
    CHECK_NOTHROW(exe.run(net.batch(2, 4)));
  };
  // Ops of CPU devices are not launched, but their ranks' calls are.
  check(false, merge_strategy::all_reduce, "collective", 0);
  for (const int skipped : {0, 1, 2})
    for (const auto* stream : {"collective", "compute"})
      check(true, merge_strategy::reduce, stream, skipped);
}

TEST_CASE("ranks of several places meet") {
  const auto net = make_mlp();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    const auto joint = train(net, on(2, strategy, false), batches);
    for (const bool asked : {false, true}) {
      auto options = on(2, strategy, asked);
      options.hooks.places = {0, 1};
      const auto parts = train(net, options, batches);
      CHECK(parts.losses == joint.losses);
      CHECK(bit_equal(*parts.parameters, *joint.parameters));
    }
  }
}

} // TEST_SUITE("actors.rank_collectives")
