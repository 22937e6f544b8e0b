// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <string>

using namespace troupe;

feed_map points(arena& memory) {
  auto x = tensor::make(memory, {4, 1}, dtype::float32);
  auto y = tensor::make(memory, {4, 1}, dtype::float32);
  for (int i = 0; i < 4; ++i) {
    x.data<float>()[i] = static_cast<float>(i);
    y.data<float>()[i] = 3 * x.data<float>()[i];
  }
  return {{"x", x}, {"y", y}};
}

int main() try {
  graph::network net;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto guess = layers::fc(x, 1);
  auto cost = layers::mean(layers::square(layers::sub(guess, y)));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(cost);

  auto parameters = std::make_shared<scope>();
  run_startup(net.startup, *parameters);
  executor_options options;
  options.parameters = parameters;
  options.devices = parse_devices("cpu:2");
  options.fetches = {guess.name()};
  options.trace.emplace();
  options.trace->file = "watching.trt";
  executor exe(net.main, options);

  arena memory(make_host_memory_source());
  const auto batch = points(memory);
  const std::array<std::string, 1> wanted{guess.name()};
  for (int step = 1; step <= 100; ++step) {
    const auto result = exe.run(batch, wanted);
    if (step != 10 && step != 100)
      continue;
    std::printf("step %d loss %.2f guesses", step, result.loss);
    const auto guesses = result.merged(guess.name());
    for (auto value : guesses.values<float>())
      std::printf(" %.2f", value);
    std::printf("\n");
  }

  const auto stats = exe.stats();
  std::printf("%d actors of ops, %d of variables\n",
              static_cast<int>(stats.op_actors),
              static_cast<int>(stats.variable_actors));
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
