// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/data/dataset.hpp>
#include <troupe/training/training_session.hpp>

#include <cstdio>
#include <exception>

using namespace troupe;

graph::variable_ref describe(graph::network& net) {
  auto image = net.data("image", {-1, 8, 8});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto hidden = layers::fc(image, 64, {.act = "relu"});
  return layers::cross_entropy(layers::fc(hidden, 10), label);
}

int main() try {
  graph::network net;
  optimizer::adam({.learning_rate = 0.01f}).minimize(describe(net));
  const auto program = make_training_program(net.startup, net.main);

  arena memory(make_host_memory_source());
  auto read = [&](dataset_part part) {
    return load_dataset("data/digits", program.feeds, part, memory);
  };
  auto digits = make_dataset_source(read(dataset_part::train),
                                    {.batch = 50, .seed = 1}, memory);
  auto unseen = make_dataset_source(read(dataset_part::held_out),
                                    {.batch = 99, .shuffle = false}, memory);

  training_session session(program, {});
  training_observer observer;
  observer.epoch = [&](std::uint64_t epoch, double loss, double) {
    std::printf("epoch %d loss %.2f\n", static_cast<int>(epoch), loss);
  };
  session.run(*digits, {.epochs = 5}, observer);

  const auto result = session.evaluate(*unseen);
  std::printf("accuracy %.2f of %d unseen digits\n", result.answers->accuracy(),
              static_cast<int>(result.samples));
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
