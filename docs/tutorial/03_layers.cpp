// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/graph/layers.hpp>

#include <cstdio>
#include <exception>

using namespace troupe;

void show(const char* what, const graph::variable_ref& variable) {
  std::printf("%-9s %s\n", what, to_string(variable.dims()).c_str());
}

int main() try {
  graph::network net;
  auto image = net.data("image", {-1, 1, 28, 28});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto filtered = layers::conv2d(
    image, {.filters = 6, .kernel = 5, .padding = 2, .act = "relu"});
  auto pooled = layers::pool2d(filtered);
  auto flat = layers::flatten(pooled);
  auto scores = layers::fc(flat, 10);
  auto cost = layers::cross_entropy(scores, label);

  show("image", image);
  show("filtered", filtered);
  show("pooled", pooled);
  show("flat", flat);
  show("scores", scores);
  show("cost", cost);

  try {
    layers::add(scores, layers::fc(flat, 7));
  } catch (const error& wrong) {
    std::printf("%s\n", wrong.what());
  }
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
