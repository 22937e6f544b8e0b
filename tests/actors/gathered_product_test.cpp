// SPDX-License-Identifier: Apache-2.0

// Devices that share memory compute the gradient of a large matrix in one
// product. Training gives the same result as merging the devices' gradients. It
// is bit-identical if the product is not divided into parts, as here.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/merging/gathered_product.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.gathered_product") {

namespace {

executor_options gathering(bool yes, int devices = 2,
                           merge_strategy strategy = merge_strategy::reduce) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  o.lowering.gather_products = yes;
  o.lowering.merge_in_updates = false; // because updates would gather, too
  o.lowering.batch = 13;
  return o;
}

// Some give shards of different sizes, some leave devices without samples.
const std::vector<std::int64_t> batches{13, 2, 1, 40, 1, 7};

/// True if an executor with these options runs a graph with gathered products.
bool gathers(const small_net& net, executor_options options) {
  bool found = false;
  options.hooks.passes.push_back([&](graph::ssa_graph g) {
    found = std::ranges::any_of(g.ops, [](auto& op) {
      return op.desc->type == graph::gathered_product_type;
    });
    return g;
  });
  options.parameters = net.parameters();
  executor{net.main, options};
  return found;
}

} // namespace

TEST_CASE("gathered gradients train bit-identically to merged ones") {
  const auto net = make_wide_mlp();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::replicate})
    for (int devices : {2, 3}) {
      CAPTURE(to_string(strategy));
      CAPTURE(devices);
      REQUIRE(gathers(net, gathering(true, devices, strategy)));
      const auto gathered =
        train(net, gathering(true, devices, strategy), batches);
      const auto merged =
        train(net, gathering(false, devices, strategy), batches);
      CHECK(gathered.losses == merged.losses);
      CHECK(bit_equal(*gathered.parameters, *merged.parameters));
      CHECK_FALSE(bit_equal(*gathered.parameters, *net.parameters()));
    }
}

TEST_CASE("message edges and steps in flight do not change gathered training") {
  const auto net = make_wide_mlp();
  const auto expected = train(net, gathering(true), batches);
  for (auto form : {edge_form::message, edge_form::mixed})
    for (std::uint32_t in_flight : {1u, 4u}) {
      auto options = gathering(true);
      options.hooks.form = form;
      options.steps_in_flight = in_flight;
      const auto t = train(net, options, batches);
      CHECK(t.losses == expected.losses);
      CHECK(bit_equal(*t.parameters, *expected.parameters));
    }
}

TEST_CASE("a gradient takes no memory on a device that does not gather it") {
  const auto net = make_wide_mlp();
  const auto peak_of_second = [&](bool yes) {
    auto options = gathering(yes, 2, merge_strategy::replicate);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    for (std::uint64_t i = 0; i < 3; ++i)
      exe.run(net.batch(i, 8));
    return exe.stats().peak_bytes.at(1);
  };
  // The merged gradients of two layers need not be alive at the same time: the
  // first may be merged and given back before the second is computed.
  const std::size_t smaller_gradient = 140 * 160 * sizeof(float);
  const std::size_t larger_gradient = 140 * 170 * sizeof(float);
  CHECK(peak_of_second(true) < smaller_gradient);
  CHECK(peak_of_second(false) >= larger_gradient);
}

TEST_CASE("gradients are merged if no kernel can gather them") {
  const auto net = make_wide_mlp();
  auto options = gathering(true);
  options.kernels = kernels_without(graph::gathered_product_type);
  CHECK_FALSE(gathers(net, options));
  const auto t = train(net, options, batches);
  CHECK(
    bit_equal(*t.parameters, *train(net, gathering(true), batches).parameters));
}

TEST_CASE("a fetched gathered gradient equals the merged one") {
  const auto net = make_wide_mlp();
  const std::string name = "fc_1.w_0@GRAD";
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    const auto fetched = [&](bool yes) {
      auto options = gathering(yes, 2, strategy);
      options.parameters = net.parameters();
      options.fetches = {name};
      CHECK(gathers(net, options) == yes);
      executor exe{net.main, options};
      return fetch_once(exe, net, name);
    };
    const auto gathered = fetched(true);
    CHECK(gathered.size() == std::size_t{2 * 140 * 170});
    CHECK(gathered == fetched(false));
  }
}

} // TEST_SUITE("actors.gathered_product")
