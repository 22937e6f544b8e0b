// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <troupe/apps/training/device_choice.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/data/batch_source.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <numeric>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.device_choice") {

namespace {

/// A choice of devices for a net. Without a trial it is one device.
struct choice {
  program_bundle bundle;
  executor_options options;

  explicit choice(const char* net) : bundle(load_program(net, "")) {
    options.loss = bundle.loss;
  }

  const executor_options& of_batch(std::int64_t batch,
                                   const char* strategy = "") {
    network_options given;
    given.strategy = strategy;
    arena memory(make_host_memory_source());
    const auto source = make_synthetic_source(bundle.feeds, batch, 0, memory);
    choose_cpu_devices(options, given, bundle, source->batch(0, 0));
    return options;
  }
};

program_bundle bundle_of(const graph::network& net,
                         const graph::variable_ref& loss) {
  program_bundle bundle;
  bundle.startup = net.startup;
  bundle.main = net.main;
  bundle.loss = loss.name();
  return bundle;
}

/// True if two devices train like one if `reduce` computes the loss.
bool devices_agree_on(graph::variable_ref (*reduce)(const graph::variable_ref&),
                      graph::merge_strategy strategy) {
  graph::network net;
  const auto x = net.data("x", {-1, 6});
  const auto loss = reduce(layers::fc(x, 3));
  optimizer::momentum({.learning_rate = 0.1f}).minimize(loss);
  const auto bundle = bundle_of(net, loss);
  executor_options options;
  options.loss = bundle.loss;
  options.strategy = strategy;
  arena memory(make_host_memory_source());
  auto batch = tensor::make(memory, {4, 6}, dtype::float32);
  std::iota(batch.values<float>().begin(), batch.values<float>().end(), -7.f);
  return devices_agree(options, 2, bundle, {{"x", batch}});
}

} // namespace

TEST_CASE("bare cpu leaves the number of devices to Troupe") {
  network_options options;
  CHECK(is_automatic(options));
  CHECK(describe_devices(options, 2) == "cpu:2");
  options.devices = "cpu:1";
  CHECK_FALSE(is_automatic(options));
  CHECK(describe_devices(options, 1) == "cpu:1");
}

TEST_CASE("one device or one per worker is chosen, with equal results") {
  choice lenet("lenet");
  const auto& options = lenet.of_batch(64);
  const auto count = options.devices.size();
  CHECK((count == 1 || count == usable_cores()));
  CHECK(options.lowering.sync_batch_norm == (count > 1));
  CHECK_FALSE(options.parameters);
}

TEST_CASE("several devices take the strategy given, else what suits them") {
  using enum graph::merge_strategy;
  for (auto [given, wanted] :
       {std::pair{"", reduce}, {"all_reduce", all_reduce}}) {
    choice lenet("lenet");
    const auto& options = lenet.of_batch(64, given);
    if (options.devices.size() == 1)
      return skip_case("needs cores that make several devices faster than one");
    CHECK(options.strategy == wanted);
  }
}

TEST_CASE("devices that share their memory reduce unless told otherwise") {
  const auto chosen = [](const char* devices, const char* given = "") {
    network_options options;
    options.strategy = given;
    return strategy_for(options, parse_devices(devices));
  };
  using enum graph::merge_strategy;
  CHECK(chosen("cpu:2") == reduce);
  CHECK(chosen("cpu:1") == all_reduce);
  CHECK(chosen("cuda:0,cuda:1") == all_reduce);
  CHECK(chosen("cpu:2", "all_reduce") == all_reduce);
  CHECK(chosen("cuda:0,cuda:1", "replicate") == replicate);
}

TEST_CASE("devices agree on a loss that is a mean, not on one that is a sum") {
  const auto mean = [](const graph::variable_ref& x) {
    return layers::reduce_mean(x);
  };
  CHECK(devices_agree_on(mean, graph::merge_strategy::all_reduce));
  CHECK_FALSE(devices_agree_on(
    [](const graph::variable_ref& x) { return layers::reduce_sum(x); },
    graph::merge_strategy::all_reduce));
  // Each device then holds the momenta of only some parameters.
  CHECK(devices_agree_on(mean, graph::merge_strategy::reduce));
}

TEST_CASE("one device is taken where more gain nothing or change results") {
  CHECK(choice("lenet").of_batch(1).devices.size() == 1);
  const auto with = [](auto change) {
    choice c("lenet");
    change(c.options);
    return c.of_batch(64).devices.size();
  };
  CHECK(with([](auto& o) { o.threads = 1; }) == 1);
  CHECK(with([](auto& o) { o.hooks.dry_run = true; }) == 1);
  CHECK(with([](auto& o) { o.scale = graph::gradient_scale::one; }) == 1);
  CHECK(choice("lenet").of_batch(64, "none").devices.size() == 1);
}

TEST_CASE("long steps are not tried") {
  graph::network net;
  const auto x = net.data("x", {-1, 4096});
  const auto loss = layers::mean(layers::fc(layers::fc(x, 4096), 4096));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(loss);
  const auto is_tried = [&](std::int64_t samples) {
    const auto bundle = bundle_of(net, loss);
    executor_options options;
    options.loss = bundle.loss;
    options.threads = 2;
    options.lowering.batch = samples;
    arena memory(make_host_memory_source());
    auto batch = tensor::make(memory, {samples, 4096}, dtype::float32);
    std::ranges::fill(batch.values<float>(), 1.0f);
    bool tried = false;
    choose_cpu_devices(options, {}, bundle, {{"x", batch}},
                       {.begins = [&] { tried = true; }});
    return tried;
  };
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  CHECK(is_tried(4));
  CHECK_FALSE(is_tried(2048)); // 0.34 TFLOP
}

TEST_CASE("a stop in a trial ends it") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  for (const int last : {1, 2, 3}) { // a trial takes at least twelve steps
    CAPTURE(last);
    choice mlp("mlp");
    network_options given;
    arena memory(make_host_memory_source());
    const auto source = make_synthetic_source(mlp.bundle.feeds, 64, 0, memory);
    const stop_request stop;
    int steps = 0;
    const auto step_ends = [&] {
      if (++steps == last)
        std::raise(SIGTERM);
    };
    choose_cpu_devices(mlp.options, given, mlp.bundle, source->batch(0, 0),
                       {.step_ends = step_ends, .stop = &stop});
    CHECK(steps == last);
    CHECK(mlp.options.devices.size() == 1);
  }
}

TEST_CASE("trials leave no trace in a training") {
  const auto loss = [](const char* devices) {
    const auto result = run_troupe({"train", "mlp", "--synthetic", "--steps",
                                    "4", "--devices", devices, "--json"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    return nlohmann::json::parse(result.out)["loss"].get<double>();
  };
  CHECK(loss("cpu") == doctest::Approx(loss("cpu:1")).epsilon(1e-5));
}

} // TEST_SUITE("apps.device_choice")
