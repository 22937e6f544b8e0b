// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/training_session.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

using namespace troupe;

training_program describe() {
  graph::network net;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto hidden = layers::fc(x, 16, {.act = "relu"});
  auto guess = layers::fc(layers::dropout(hidden), 1);
  auto cost = layers::mean(layers::square(layers::sub(guess, y)));
  optimizer::adam({.learning_rate = 0.01f}).minimize(cost);
  return make_training_program(net.startup, net.main);
}

// Batch `index` of an epoch: 4 points of y = x * x.
feed_map make_batch(arena& memory, std::uint64_t index) {
  auto x = tensor::make(memory, {4, 1}, dtype::float32);
  auto y = tensor::make(memory, {4, 1}, dtype::float32);
  for (int i = 0; i < 4; ++i) {
    x.data<float>()[i] = static_cast<float>(index) / 10 + static_cast<float>(i);
    y.data<float>()[i] = x.data<float>()[i] * x.data<float>()[i];
  }
  return {{"x", x}, {"y", y}};
}

// Trains until so many steps of the run are done. Returns the last loss.
double train(const std::string& folder, bool resume, std::uint64_t steps) {
  arena memory(make_host_memory_source());
  auto batches = make_generator_source(
    [&](std::uint64_t, std::uint64_t index) {
      return make_batch(memory, index);
    },
    {.steps_per_epoch = 10, .batch = 4});

  session_options options;
  options.snapshots = {.folder = folder, .resume = resume};
  training_session session(describe(), options);
  std::printf("%s: step %d to %d\n", folder.c_str(),
              static_cast<int>(session.position().steps),
              static_cast<int>(steps));
  const auto report =
    session.run(*batches, {.steps = steps, .snapshot_every = 10});
  session.save(folder + "/saved");
  return report.history.steps.back();
}

int main() try {
  std::filesystem::remove_all("build/whole");
  std::filesystem::remove_all("build/parts");

  const auto whole = train("build/whole", false, 40);
  train("build/parts", false, 20);
  const auto parts = train("build/parts", true, 40);
  std::printf("the last losses are %s\n",
              whole == parts ? "equal" : "different");
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
