// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

using namespace troupe;

// A variable that `troupe launch` sets.
std::string launched_with(const char* variable) {
  if (const char* text = std::getenv(variable))
    return text;
  throw std::runtime_error("start this program with troupe launch");
}

feed_map points(arena& memory) {
  auto x = tensor::make(memory, {5, 1}, dtype::float32);
  auto y = tensor::make(memory, {5, 1}, dtype::float32);
  for (int i = 0; i < 5; ++i) {
    x.data<float>()[i] = static_cast<float>(i) / 4;
    y.data<float>()[i] = 2 * x.data<float>()[i] + 1;
  }
  return {{"x", x}, {"y", y}};
}

int main() try {
  graph::network net;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto cost = layers::mean(layers::square(layers::sub(layers::fc(x, 1), y)));
  optimizer::sgd({.learning_rate = 0.5f}).minimize(cost);

  const auto size = std::stoul(launched_with("TROUPE_SIZE"));
  node_options place;
  place.process = std::stoul(launched_with("TROUPE_RANK"));
  place.pass_folder = launched_with("TROUPE_RENDEZVOUS");
  for (std::size_t device = 0; device < size; ++device)
    place.process_of_device.push_back(device);

  executor_options options;
  options.devices = parse_devices("cpu:" + std::to_string(size));
  options.nodes = place;
  options.parameters = std::make_shared<scope>();
  run_startup(net.startup, *options.parameters);
  executor exe(net.main, options);

  arena memory(make_host_memory_source());
  const auto share = exe.own_share(points(memory));
  std::printf("process %d of %d trains %d samples\n",
              static_cast<int>(place.process), static_cast<int>(size),
              static_cast<int>(share.at("x").num_samples()));
  for (int step = 1; step <= 100; ++step)
    if (const auto loss = exe.run(share).loss;
        step % 50 == 1 && place.process == 0)
      std::printf("step %d loss %.4f\n", step, loss);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
