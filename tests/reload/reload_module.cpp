// SPDX-License-Identifier: Apache-2.0
//
// A module of an application that trains a network.
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <cmath>
#include <memory>

/// Trains on two devices. False if that fails.
extern "C" bool train_a_little() try {
  using namespace troupe;
  graph::network net;
  const auto x = net.data("x", {-1, 1}), y = net.data("y", {-1, 1});
  const auto hidden = layers::fc(x, 64, {.act = "relu"});
  const auto far = layers::square(layers::sub(layers::fc(hidden, 1), y));
  optimizer::adam().minimize(layers::mean(far));

  arena memory{make_host_memory_source()};
  feed_map batch;
  for (auto* name : {"x", "y"}) {
    auto value = tensor::make(memory, {64, 1}, dtype::float32);
    for (auto& v : value.values<float>())
      v = 0.5f;
    batch.emplace(name, value);
  }
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = std::make_shared<scope>();
  run_startup(net.startup, *options.parameters);
  executor exe{net.main, options};
  double loss = 0;
  for (int step = 0; step < 5; ++step)
    loss = exe.run(batch).loss;
  return std::isfinite(loss);
} catch (...) {
  return false;
}
