// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/models/builders.hpp>

#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

namespace troupe::graph {

model build_mlp(const model_options& options) {
  network net;
  auto feeds = image_feeds({-1, 784}, 10);
  declare(net, feeds);
  auto h = layers::fc(input(net, feeds[0]), 512, {.act = "relu"});
  h = layers::fc(h, 256, {.act = "relu"});
  return finish(net, classifier("mlp", 64, layers::fc(h, 10), feeds), options,
                minimize_by_momentum);
}

// LeCun et al., "Gradient-based learning applied to document recognition",
// 1998, in the form of the Caffe and Paddle tutorials.
model build_lenet(const model_options& options) {
  network net;
  auto feeds = image_feeds({-1, 1, 28, 28}, 10);
  declare(net, feeds);
  auto h = layers::conv2d(input(net, feeds[0]), {.filters = 20, .kernel = 5});
  h = layers::relu(layers::pool2d(h));
  h = layers::conv2d(h, {.filters = 50, .kernel = 5});
  h = layers::relu(layers::pool2d(h));
  h = layers::fc(h, 500, {.act = "relu"});
  return finish(net, classifier("lenet", 64, layers::fc(h, 10), feeds), options,
                minimize_by_momentum);
}

model build_digits(const model_options& options) {
  network net;
  auto feeds = image_feeds({-1, 1, 8, 8}, 10);
  declare(net, feeds);
  auto drop = [&options](const variable_ref& x) {
    const auto p = options.dropout;
    return p > 0 ? layers::dropout(x, {.probability = p}) : x;
  };
  auto h = input(net, feeds[0]);
  for (std::int64_t filters : {32, 64}) {
    const layers::conv2d_options same_size{
      .filters = filters, .kernel = 3, .padding = 1, .act = "relu"};
    h = layers::conv2d(layers::conv2d(h, same_size), same_size);
    h = drop(layers::pool2d(h));
  }
  h = drop(layers::fc(h, 128, {.act = "relu"}));
  return finish(net, classifier("digits", 32, layers::fc(h, 10), feeds),
                options, [](const variable_ref& loss) {
                  optimizer::adam({.learning_rate = 0.001f}).minimize(loss);
                });
}

} // namespace troupe::graph
