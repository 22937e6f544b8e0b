// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <cstdio>
#include <exception>

using namespace troupe;

// The network guess = w * x + b, and how far it is from y.
graph::variable_ref describe(graph::network& net) {
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto guess = layers::fc(x, 1);
  return layers::mean(layers::square(layers::sub(guess, y)));
}

// 16 points of the line y = 2 * x + 1.
feed_map points(arena& memory) {
  auto x = tensor::make(memory, {16, 1}, dtype::float32);
  auto y = tensor::make(memory, {16, 1}, dtype::float32);
  for (int i = 0; i < 16; ++i) {
    x.data<float>()[i] = static_cast<float>(i) / 8 - 1;
    y.data<float>()[i] = 2 * x.data<float>()[i] + 1;
  }
  return {{"x", x}, {"y", y}};
}

int main() try {
  graph::network net;
  auto cost = describe(net);
  optimizer::sgd opt({.learning_rate = 0.3f});
  opt.minimize(cost);

  auto parameters = std::make_shared<scope>();
  run_startup(net.startup, *parameters);

  executor exe(net.main, {.parameters = parameters});
  arena memory(make_host_memory_source());
  const auto batch = points(memory);
  for (int step = 1; step <= 60; ++step) {
    const auto loss = exe.run(batch).loss;
    if (step % 20 == 1)
      std::printf("step %d loss %.4f\n", step, loss);
  }

  exe.synchronize_parameters();
  for (auto name : {"fc_0.w_0", "fc_0.b_0"})
    std::printf("%s = %.2f\n", name,
                parameters->find(name)->as_tensor().values<float>()[0]);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
