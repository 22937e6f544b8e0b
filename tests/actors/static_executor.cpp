// SPDX-License-Identifier: Apache-2.0
//
// An executor in static storage ends its actor system when the process exits,
// after the thread-local objects of the main thread have been destroyed. A step
// is still running then.
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

namespace {

std::optional<troupe::executor> exe;

} // namespace

int main() {
  using namespace troupe;
  graph::network net;
  const auto x = net.data("x", {-1, 3, 16, 16});
  const auto image =
    layers::batch_norm(layers::conv2d(x, {.filters = 16}), {.act = "relu"});
  const auto loss = layers::mean(layers::square(layers::fc(image, 3)));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(loss);
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = std::make_shared<scope>();
  run_startup(net.startup, *options.parameters);
  exe.emplace(net.main, options);
  arena memory(make_host_memory_source());
  auto batch = tensor::make(memory, {8, 3, 16, 16}, dtype::float32);
  std::ranges::fill(batch.values<float>(), 1.0f);
  const auto first = exe->run({{"x", batch}}).loss;
  exe->submit({{"x", batch}});
  return std::isfinite(first) ? 0 : 1;
}
