// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/inference_session.hpp>

#include <cstdio>
#include <exception>
#include <future>
#include <thread>

using namespace troupe;

tensor column(arena& memory, std::initializer_list<float> values) {
  auto made = tensor::make(
    memory, {static_cast<std::int64_t>(values.size()), 1}, dtype::float32);
  std::copy(values.begin(), values.end(), made.data<float>());
  return made;
}

int main() try {
  graph::network net;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto guess = layers::fc(x, 1);
  auto cost = layers::mean(layers::square(layers::sub(guess, y)));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(cost);

  arena memory(make_host_memory_source());
  auto parameters = std::make_shared<scope>();
  run_startup(net.startup, *parameters);
  executor exe(net.main, {.parameters = parameters});
  for (int step = 0; step < 200; ++step)
    exe.run(
      {{"x", column(memory, {0, 1, 2})}, {"y", column(memory, {1, 3, 5})}});
  exe.synchronize_parameters();

  predictor_options options;
  options.outputs = {guess.name()};
  options.max_batch = 8;
  inference_session session(net.test(), {parameters, 200}, options);

  auto ask = [&](float value) {
    auto answer = session.predict({{"x", column(memory, {value})}}).get();
    return answer.outputs.at(guess.name()).values<float>()[0];
  };
  auto half = std::async(std::launch::async, ask, 0.5f);
  auto ten = std::async(std::launch::async, ask, 10.0f);
  std::printf("0.5 -> %.2f\n", half.get());
  std::printf("10 -> %.2f\n", ten.get());
  std::printf("%d requests\n", static_cast<int>(session.counts().requests));
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
