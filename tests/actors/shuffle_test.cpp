// SPDX-License-Identifier: Apache-2.0

// Any order and delay of readiness messages gives bit-identical parameters.
// Without one of the hazard edges it does not, so these tests can fail.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/skip_case.hpp>

#include "late_device.hpp"
#include <troupe/actors/configure.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

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

constexpr std::uint64_t steps = 3;
constexpr std::size_t workers = 2;

/// One actor system for thousands of executors. With its two workers, a single
/// device has a wide stream, and several devices have serial ones.
struct shared_system {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system =
    make_actor_system(config, workers);
};

/// Runs that must give the same bits for each seed.
struct shuffled_runs {
  int devices = 4;
  graph::merge_strategy strategy = graph::merge_strategy::all_reduce;
  std::uint64_t seeds = 1000;
  std::vector<edge_form> forms{edge_form::counter}; ///< in turn
  bool late = false; ///< devices complete late and out of order
};

executor_options options_of(const small_net& net, const shuffled_runs& runs,
                            shared_system& shared) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(runs.devices));
  o.parameters = net.parameters();
  o.system = shared.system.get();
  o.steps_in_flight = 2;
  o.strategy = runs.strategy;
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

/// The same run with messages in an order drawn from the seed.
executor_options disturbed(executor_options options, const shuffled_runs& runs,
                           std::uint64_t seed) {
  options.hooks.form = runs.forms[seed % runs.forms.size()];
  options.hooks.shuffle =
    delivery_shuffle{.seed = seed, .max_delay_us = runs.late ? 10u : 20u};
  if (runs.late)
    for (int d = 0; d < runs.devices; ++d)
      options.hooks.device_instances.push_back(
        make_late_device(d,
                         seed * static_cast<std::uint64_t>(runs.devices)
                           + static_cast<std::uint64_t>(d),
                         10));
  return options;
}

void all_seeds_agree(const small_net& net, const shuffled_runs& runs) {
  shared_system shared;
  auto options = options_of(net, runs, shared);
  const auto expected = train(net, options);
  for (std::uint64_t seed = 0; seed < runs.seeds; ++seed) {
    options.parameters = net.parameters();
    CAPTURE(seed);
    REQUIRE(bit_equal(*expected, *train(net, disturbed(options, runs, seed))));
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
  all_seeds_agree(make_lenet(), {.strategy = all_reduce});
}

TEST_CASE("1,000 message orders of LeNet with reduce give the same bits") {
  all_seeds_agree(make_lenet(), {.strategy = reduce});
}

TEST_CASE("1,000 message orders of ResNet with all_reduce give the same bits") {
  all_seeds_agree(make_resnet(true), {.strategy = all_reduce});
}

TEST_CASE("1,000 message orders of ResNet with reduce give the same bits") {
  all_seeds_agree(make_resnet(true), {.strategy = reduce});
}

TEST_CASE("1,000 message orders of wide streams give the same bits") {
  shared_system shared;
  const executor exe{make_lenet().main,
                     options_of(make_lenet(), {.devices = 1}, shared)};
  REQUIRE(graph::plan_streams(exe.graph(), workers).front().width == 2);
  all_seeds_agree(make_lenet(), {.devices = 1, .seeds = 500});
  all_seeds_agree(make_resnet(true), {.devices = 1, .seeds = 500});
}

TEST_CASE("message orders of row-sparse gradients give the same bits") {
  for (auto strategy : {all_reduce, reduce})
    all_seeds_agree(make_word2vec(), {.strategy = strategy, .seeds = 100});
  all_seeds_agree(make_word2vec(), {.devices = 1, .seeds = 100});
}

TEST_CASE("CAF messages and mixed edges in any order give the same bits") {
  for (auto form : {edge_form::message, edge_form::mixed}) {
    all_seeds_agree(make_lenet(), {.seeds = 100, .forms = {form}});
    all_seeds_agree(make_resnet(true),
                    {.strategy = reduce, .seeds = 100, .forms = {form}});
    all_seeds_agree(make_lenet(),
                    {.devices = 1, .seeds = 100, .forms = {form}});
  }
}

TEST_CASE("1,000 orders of late completions give the same bits") {
  const auto run = [](const small_net& net, int devices,
                      graph::merge_strategy strategy, std::uint64_t seeds) {
    CAPTURE(net.name);
    all_seeds_agree(net, {.devices = devices,
                          .strategy = strategy,
                          .seeds = seeds,
                          .forms = {edge_form::counter, edge_form::mixed},
                          .late = true});
  };
  run(make_lenet(), 2, all_reduce, 250);
  run(make_mlp(), 4, reduce, 250);
  run(make_word2vec(), 2, all_reduce, 250);
  run(make_word2vec(), 2, reduce, 250);
  for (auto strategy : {all_reduce, reduce})
    run(make_resnet(true), 2, strategy, 25);
}

TEST_CASE("removing hazard edges fails the hazard check and changes results") {
#if defined(__SANITIZE_THREAD__)
  return skip_case("races on purpose, which ThreadSanitizer reports");
#endif
  const auto net = make_lenet();
  for (auto& runs :
       {shuffled_runs{}, shuffled_runs{.devices = 1},
        shuffled_runs{.devices = 2, .strategy = reduce, .late = true}}) {
    CAPTURE(runs.devices);
    CAPTURE(runs.late);
    shared_system shared;
    auto options = options_of(net, runs, shared);
    const auto expected = train(net, options);
    options.hooks.passes = {without_hazard_edges("fc_0.w_0")};
    const auto e = caught([&] { executor exe(net.main, options); });
    CHECK(e.code() == errc::graph_invalid);
    CHECK(says(e, "fc_0.w_0"));
    options.hooks.skip_hazard_check = true;
    bool differed = false;
    for (std::uint64_t seed = 0; seed < 100 && !differed; ++seed) {
      options.parameters = net.parameters();
      auto wrong = disturbed(options, runs, seed);
      wrong.hooks.shuffle->max_delay_us = 500;
      differed = !bit_equal(*expected, *train(net, wrong));
    }
    CHECK(differed);
  }
}

} // TEST_SUITE("actors.shuffle")
