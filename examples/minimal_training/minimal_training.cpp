// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/kernels/io/idx.hpp>

#include <cstdio>
#include <exception>

int main() try {
  using namespace troupe;
  graph::network net;
  auto image = net.data("image", {-1, 8, 8});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto pixels = layers::scale(image, {.scale = 1 / 255.0f});
  auto hidden = layers::fc(pixels, 64, {.act = "relu"});
  auto cost = layers::cross_entropy(layers::fc(hidden, 10), label);
  optimizer::adam({.learning_rate = 0.01f}).minimize(cost);

  arena memory(make_host_memory_source());
  auto digits = read_idx_folder("data/digits", memory).train;
  feed_map batch{{"image", cast(digits.images, dtype::float32, memory)},
                 {"label", cast(digits.labels, dtype::int64, memory)
                             .reshaped({digits.labels.numel(), 1})}};

  auto parameters = std::make_shared<scope>();
  run_startup(net.startup, *parameters);
  executor exe(net.main,
               {.devices = parse_devices("cpu:2"), .parameters = parameters});
  for (int step = 0; step < 50; ++step)
    std::printf("step %d loss %.4f\n", step, exe.run(batch).loss);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
