// SPDX-License-Identifier: Apache-2.0

// Updates on devices that share memory merge gradients that nothing else reads.
// Training gives the same bits as merging the gradients before the updates.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/merging/merging_update.hpp>

#include <actors/small_nets.hpp>
#include <support/machine.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.merging_update") {

namespace {

executor_options merging(bool yes, int devices = 2,
                         merge_strategy strategy = merge_strategy::reduce) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  o.lowering.merge_in_updates = yes;
  o.lowering.batch = 13;
  return o;
}

// Some give shards of different sizes, some leave devices without samples.
const std::vector<std::int64_t> batches{13, 2, 1, 40, 1, 7};

/// `count` of the graph that an executor with these options runs.
template <class Count>
std::ptrdiff_t count_in_graph(const small_net& net, executor_options options,
                              Count count) {
  std::ptrdiff_t found = 0;
  options.hooks.passes.push_back([&](graph::ssa_graph g) {
    found = count(g);
    return g;
  });
  options.parameters = net.parameters();
  executor{net.main, options};
  return found;
}

std::ptrdiff_t merging_updates(const small_net& net,
                               const executor_options& options) {
  return count_in_graph(net, options, [](const graph::ssa_graph& g) {
    return std::ranges::count_if(
      g.ops, [](auto& op) { return graph::is_merging_update(op.desc->type); });
  });
}

} // namespace

TEST_CASE("merging in updates trains bit-identically to merging before them") {
  for (const auto& net : {make_mlp(), make_wide_mlp(), make_lenet(),
                          make_resnet(true), make_word2vec()})
    for (auto strategy : {merge_strategy::reduce, merge_strategy::replicate})
      for (int devices : {2, 3}) {
        CAPTURE(net.name);
        CAPTURE(devices);
        REQUIRE(merging_updates(net, merging(true, devices, strategy)) > 0);
        const auto merged =
          train(net, merging(true, devices, strategy), batches);
        const auto before =
          train(net, merging(false, devices, strategy), batches);
        CHECK(merged.losses == before.losses);
        CHECK(bit_equal(*merged.parameters, *before.parameters));
        CHECK_FALSE(bit_equal(*merged.parameters, *net.parameters()));
      }
}

TEST_CASE("message edges and steps in flight do not change merging updates") {
  for (const auto& net : {make_lenet(), make_wide_mlp()}) {
    const auto expected = train(net, merging(true), batches);
    for (auto form : {edge_form::message, edge_form::mixed})
      for (std::uint32_t in_flight : {1u, 4u}) {
        auto options = merging(true);
        options.hooks.form = form;
        options.steps_in_flight = in_flight;
        const auto t = train(net, options, batches);
        CHECK(t.losses == expected.losses);
        CHECK(bit_equal(*t.parameters, *expected.parameters));
      }
  }
}

TEST_CASE("merging updates of filters in blocked layout give the same bits") {
  if (!uses_avx512())
    return skip_case("needs AVX-512, which has filters in blocks");
  const auto net = make_resnet(true);
  auto options = merging(true);
  options.lowering.kernel_layouts = true;
  REQUIRE(merging_updates(net, options) > 0);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  for (std::uint64_t step = 0; step < batches.size(); ++step)
    exe.run(net.batch(step, batches[step]));
  CHECK(count_laid_out(*options.parameters) > 0);
  exe.synchronize_parameters();
  const auto expected = train(net, merging(false), batches);
  CHECK(bit_equal(*options.parameters, *expected.parameters));
}

TEST_CASE("under all_reduce no update merges gradients") {
  CHECK(
    merging_updates(make_lenet(), merging(true, 2, merge_strategy::all_reduce))
    == 0);
}

TEST_CASE("gradients are merged before the update if a kernel is missing") {
  const auto net = make_wide_mlp();
  for (auto missing : {"merging_momentum", "gathered_momentum"}) {
    auto options = merging(true);
    options.kernels = kernels_without(missing);
    CHECK(merging_updates(net, options) == 0);
    CHECK(bit_equal(*train(net, options, batches).parameters,
                    *train(net, merging(true), batches).parameters));
  }
}

TEST_CASE("the graph has no variable for a gradient gathered by its update") {
  const auto variables = [](bool yes) {
    return count_in_graph(make_wide_mlp(), merging(yes),
                          [](const graph::ssa_graph& g) {
                            return std::ranges::count(g.vars, "fc_1.w_0@GRAD",
                                                      &graph::var_handle::name);
                          });
  };
  CHECK(variables(false) == 1);
  CHECK(variables(true) == 0);
}

TEST_CASE("a fetched gradient is the merged gradient") {
  const auto net = make_lenet();
  const std::string name = "fc_0.w_0@GRAD";
  const auto fetched = [&](bool yes) {
    auto options = merging(yes);
    options.parameters = net.parameters();
    options.fetches = {name};
    executor exe{net.main, options};
    return fetch_once(exe, net, name);
  };
  CHECK(fetched(true) == fetched(false));
}

} // TEST_SUITE("actors.merging_update")
