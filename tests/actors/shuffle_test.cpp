// SPDX-License-Identifier: Apache-2.0

// Any order and delay of readiness messages gives bit-identical parameters.
// Without one of the hazard edges it does not, so these tests can fail.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include "late_device.hpp"
#include <troupe/actors/configure.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.shuffle") {

namespace {

constexpr int devices = 4;
constexpr std::uint64_t steps = 3;

/// One actor system for thousands of executors.
struct shared_system {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  shared_system() {
    configure(config);
    system = std::make_unique<caf::actor_system>(config);
  }
};

executor_options base_options(const small_net& net, shared_system& shared) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.parameters = net.parameters();
  o.system = shared.system.get();
  o.steps_in_flight = 2;
  o.lowering.fuse_all_reduce_bytes =
    0; // a collective per gradient allows more orders
  return o;
}

/// Trains for three steps, two in flight, and returns the parameters.
std::shared_ptr<scope> train(const small_net& net, executor_options options) {
  auto parameters = options.parameters;
  executor exe{net.main, std::move(options)};
  std::vector<step_id> under_way;
  for (std::uint64_t s = 0; s < steps; ++s)
    under_way.push_back(exe.submit(net.batch(s, 8)));
  for (auto id : under_way)
    exe.wait(id);
  return parameters;
}

void all_seeds_agree(const small_net& net, graph::merge_strategy strategy,
                     std::uint64_t seeds, edge_form form) {
  shared_system shared;
  auto options = base_options(net, shared);
  options.strategy = strategy;
  const auto expected = train(net, options);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    options.parameters = net.parameters();
    options.hooks.form = form;
    options.hooks.shuffle = delivery_shuffle{.seed = seed, .max_delay_us = 20};
    CAPTURE(seed);
    REQUIRE(bit_equal(*expected, *train(net, options)));
  }
}

void late_devices_agree(const small_net& net, graph::merge_strategy strategy,
                        std::uint64_t seeds) {
  shared_system shared;
  auto options = base_options(net, shared);
  options.strategy = strategy;
  const auto expected = train(net, options);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    options.parameters = net.parameters();
    options.hooks.device_instances.clear();
    for (int d = 0; d < devices; ++d)
      options.hooks.device_instances.push_back(make_late_device(
        d, seed * devices + static_cast<std::uint64_t>(d), 10));
    options.hooks.shuffle = delivery_shuffle{.seed = seed, .max_delay_us = 10};
    CAPTURE(seed);
    REQUIRE(bit_equal(*expected, *train(net, options)));
  }
}

/// A graph without the write-after-read edges between the ops that read
/// `variable` and its update.
graph_pass without_hazard_edges(const std::string& variable) {
  return [variable](graph::ssa_graph g) {
    std::erase_if(g.edges, [&](const graph::edge& e) {
      if (e.kind != graph::edge_kind::write_after_read)
        return false;
      const auto& written = g.op(e.to).outputs;
      return std::any_of(written.begin(), written.end(), [&](handle_id v) {
        return g.var(v).name == variable;
      });
    });
    return g;
  };
}

constexpr auto all_reduce = graph::merge_strategy::all_reduce;
constexpr auto reduce = graph::merge_strategy::reduce;

} // namespace

TEST_CASE("1,000 message orders of LeNet with all_reduce give the same bits") {
  all_seeds_agree(make_lenet(), all_reduce, 1000, edge_form::counter);
}

TEST_CASE("1,000 message orders of LeNet with reduce give the same bits") {
  all_seeds_agree(make_lenet(), reduce, 1000, edge_form::counter);
}

TEST_CASE("1,000 message orders of ResNet with all_reduce give the same bits") {
  all_seeds_agree(make_resnet(true), all_reduce, 1000, edge_form::counter);
}

TEST_CASE("1,000 message orders of ResNet with reduce give the same bits") {
  all_seeds_agree(make_resnet(true), reduce, 1000, edge_form::counter);
}

TEST_CASE("message orders of row-sparse gradients give the same bits") {
  all_seeds_agree(make_word2vec(), all_reduce, 100, edge_form::counter);
  all_seeds_agree(make_word2vec(), reduce, 100, edge_form::counter);
}

TEST_CASE("CAF messages and mixed edges in any order give the same bits") {
  for (auto form : {edge_form::message, edge_form::mixed}) {
    all_seeds_agree(make_lenet(), all_reduce, 100, form);
    all_seeds_agree(make_resnet(true), reduce, 100, form);
  }
}

TEST_CASE("devices that complete late and out of order give the same bits") {
  for (auto strategy : {all_reduce, reduce}) {
    late_devices_agree(make_lenet(), strategy, 25);
    late_devices_agree(make_resnet(true), strategy, 25);
  }
}

TEST_CASE("removing hazard edges fails the hazard check and changes results") {
  const auto net = make_lenet();
  shared_system shared;
  auto options = base_options(net, shared);
  const auto expected = train(net, options);
  options.hooks.passes = {without_hazard_edges("fc_0.w_0")};
  const auto e = caught([&] { executor exe(net.main, options); });
  CHECK(e.code() == errc::graph_invalid);
  CHECK(says(e, "fc_0.w_0"));
  options.hooks.skip_hazard_check = true;
  bool differed = false;
  for (std::uint64_t seed = 0; seed < 100 && !differed; ++seed) {
    options.parameters = net.parameters();
    options.hooks.shuffle = delivery_shuffle{.seed = seed, .max_delay_us = 500};
    differed = !bit_equal(*expected, *train(net, options));
  }
  CHECK(differed);
}

} // TEST_SUITE("actors.shuffle")
