// SPDX-License-Identifier: Apache-2.0

// Training with recomputed activations gives the same result as with kept ones.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/passes/program_order.hpp>
#include <troupe/graph/passes/recompute_activations.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.recompute_activations") {

namespace {

// These give even shards, uneven shards, and devices without samples.
const std::vector<std::int64_t> batches{8, 7, 5, 2, 1, 8};

executor_options recomputing(bool yes, const char* devices = "cpu:1") {
  executor_options o;
  o.devices = parse_devices(devices);
  o.lowering.recompute_activations = yes;
  return o;
}

std::ptrdiff_t recomputed_in(const executor& exe) {
  return std::ranges::count_if(exe.graph().ops, [](const graph::op_handle& o) {
    return o.desc->type == graph::recompute_type;
  });
}

/// The output of the first relu.
std::string activation(const small_net& net) {
  const auto& ops = net.main.main().ops;
  return std::ranges::find(ops, "relu", &graph::op_desc::type)
    ->only_output("Out");
}

} // namespace

TEST_CASE("recomputed activations give bit-identical training") {
  const auto net = make_resnet(true);
  for (auto devices : {"cpu:1", "cpu:2", "cpu:4"})
    for (const bool synchronised : {false, true}) {
      CAPTURE(devices);
      CAPTURE(synchronised);
      const auto run = [&](bool yes) {
        auto options = recomputing(yes, devices);
        options.lowering.sync_batch_norm = synchronised;
        return train(net, options, batches);
      };
      auto options = recomputing(true, devices);
      options.parameters = net.parameters();
      options.lowering.sync_batch_norm = synchronised;
      CHECK(recomputed_in(executor{net.main, options}) > 0);
      const auto kept = run(false);
      const auto again = run(true);
      CHECK(again.losses == kept.losses);
      CHECK(bit_equal(*again.parameters, *kept.parameters));
    }
}

TEST_CASE("recomputing activations reduces the memory of a step") {
  const auto peak = [](bool yes) {
    auto options = recomputing(yes);
    options.hooks.passes = {graph::run_in_program_order};
    options.steps_in_flight = 1;
    options.threads = 1; // with helpers, memory for parts depends on timing
    return train(make_resnet(true), options, std::vector<std::int64_t>(3, 64))
      .peak_bytes;
  };
  CHECK(peak(true) < peak(false));
}

TEST_CASE("an activation can be fetched while others are recomputed") {
  const auto net = make_resnet(true);
  const auto name = activation(net);
  std::vector<float> values[2];
  for (const bool yes : {false, true}) {
    auto options = recomputing(yes);
    options.parameters = net.parameters();
    options.fetches = {name};
    executor exe{net.main, std::move(options)};
    CHECK((recomputed_in(exe) > 0) == yes); // other activations
    values[yes] = fetch_once(exe, net, name);
  }
  CHECK(values[0].size() > 4);
  CHECK(values[0] == values[1]);
}

TEST_CASE("without a recompute kernel, training gives the same losses") {
  const auto net = make_resnet(true);
  auto options = recomputing(true);
  options.kernels = kernels_without(graph::recompute_type);
  CHECK(train(net, options, batches).losses
        == train(net, recomputing(true), batches).losses);
}

} // TEST_SUITE("actors.recompute_activations")
