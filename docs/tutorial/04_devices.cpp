// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <cmath>
#include <cstdio>
#include <exception>

using namespace troupe;

graph::variable_ref describe(graph::network& net) {
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto hidden = layers::fc(x, 8, {.act = "tanh"});
  auto guess = layers::fc(hidden, 1);
  return layers::mean(layers::square(layers::sub(guess, y)));
}

// 7 points of the curve y = sin(x).
feed_map points(arena& memory) {
  auto x = tensor::make(memory, {7, 1}, dtype::float32);
  auto y = tensor::make(memory, {7, 1}, dtype::float32);
  for (int i = 0; i < 7; ++i) {
    x.data<float>()[i] = static_cast<float>(i) - 3;
    y.data<float>()[i] = std::sin(x.data<float>()[i]);
  }
  return {{"x", x}, {"y", y}};
}

int main() try {
  graph::network net;
  optimizer::sgd({.learning_rate = 0.1f}).minimize(describe(net));
  arena memory(make_host_memory_source());
  const auto batch = points(memory);

  for (auto devices : {"cpu:1", "cpu:2", "cpu:3"}) {
    auto parameters = std::make_shared<scope>();
    run_startup(net.startup, *parameters, 42);
    executor exe(net.main,
                 {.devices = parse_devices(devices), .parameters = parameters});
    step_result result;
    for (int step = 0; step < 100; ++step)
      result = exe.run(batch);

    std::printf("%s: loss %.4f, samples", devices, result.loss);
    for (auto count : result.samples)
      std::printf(" %d", static_cast<int>(count));
    std::printf("\n");
  }
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
