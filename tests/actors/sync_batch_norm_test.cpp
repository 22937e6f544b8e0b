// SPDX-License-Identifier: Apache-2.0

// With synchronized batch norms, several devices compute the same as one device
// on the whole batch, however the samples are distributed.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.sync_batch_norm") {

namespace {

executor_options
on(int devices,
   graph::merge_strategy strategy = graph::merge_strategy::all_reduce) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  o.lowering.sync_batch_norm = true;
  return o;
}

double difference(const training& a, const training& b) {
  return relative_difference(values_of(*a.parameters), values_of(*b.parameters),
                             1e-2);
}

// These give even shards, uneven shards, and devices without samples.
const std::vector<std::int64_t> batches{8, 7, 5, 3, 2, 8};

} // namespace

TEST_CASE("several devices match one device on the whole batch") {
  const auto net = make_resnet(true);
  const auto one = train(net, on(1), batches);
  for (int devices : {2, 3, 4})
    for (auto strategy :
         {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce,
          graph::merge_strategy::replicate}) {
      CAPTURE(devices);
      CAPTURE(to_string(strategy));
      const auto several = train(net, on(devices, strategy), batches);
      for (std::size_t i = 0; i < batches.size(); ++i)
        CHECK(several.losses[i]
              == doctest::Approx(one.losses[i]).epsilon(2e-5));
      CHECK(difference(several, one) < 1e-3);
    }
}

TEST_CASE("with statistics per device, results differ from one device") {
  const auto net = make_resnet(true);
  auto apart = on(2);
  apart.lowering.sync_batch_norm = false;
  CHECK(difference(train(net, apart, batches), train(net, on(1), batches))
        > 1e-2);
}

TEST_CASE(
  "all devices have the same running statistics, even without samples") {
  const auto net = make_resnet(true);
  const auto t = train(net, on(4), std::vector<std::int64_t>{2, 1, 3});
  int compared = 0;
  for (std::size_t device : {1u, 2u, 3u})
    for (const auto& [name, var] : net.main.main().vars)
      if (const auto* here = t.parameters->replica(device).find(name);
          var.persistable && here && here->is_tensor()) {
        CAPTURE(name);
        const auto values = here->as_tensor().values<float>();
        const auto first = t.parameters->var(name).as_tensor().values<float>();
        CHECK(std::equal(values.begin(), values.end(), first.begin()));
        ++compared;
      }
  CHECK(compared > 0); // parameters are shared, running statistics are not
}

TEST_CASE("any order of messages gives the same bits") {
  const auto net = make_resnet(true);
  const auto expected = train(net, on(4), batches);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    auto options = on(4);
    options.hooks.form = seed % 2 ? edge_form::message : edge_form::mixed;
    options.hooks.shuffle = delivery_shuffle{.seed = seed, .max_delay_us = 20};
    CHECK(bit_equal(*expected.parameters,
                    *train(net, options, batches).parameters));
  }
}

TEST_CASE("sync_batch_norm ops are synchronized without the option") {
  auto net = make_resnet(true);
  const auto one = train(net, on(1), batches);
  for (auto& op : net.main.main().ops)
    if (op.type.starts_with("batch_norm"))
      op.type = "sync_" + op.type;
  auto options = on(2);
  options.lowering.sync_batch_norm = false;
  CHECK(difference(train(net, options, batches), one) < 1e-3);
  CHECK(bit_equal(*train(net, on(1), batches).parameters, *one.parameters));
}
} // TEST_SUITE("actors.sync_batch_norm")
