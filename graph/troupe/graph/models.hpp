// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/network.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// A variable that each step of a model feeds.
struct model_feed {
  std::string name;
  shape dims; ///< -1 for the batch extent
  dtype type = dtype::float32;
  std::int64_t below = 0; ///< integers are in [0, below); 0: real numbers
};

/// A named network that is ready for training.
struct model {
  std::string name;
  program startup;
  program main; ///< forward, backward and optimizer
  program test; ///< forward in evaluation mode
  std::string loss;
  std::string accuracy; ///< empty if the model is not a classifier
  std::vector<model_feed> feeds;
  std::int64_t batch = 1; ///< default batch size over all devices
};

/// Variations of a built-in model.
struct model_options {
  /// resnet8, resnet18, resnet50, resnext50: use batch normalization. If false,
  /// convolutions have a bias instead.
  bool batch_norm = true;
  /// digits: dropout probability.
  float dropout = 0.5f;
  /// Appends the optimizer to the network; empty: the model's default
  /// optimizer.
  std::function<void(const variable_ref& loss)> minimize = {};
};

/// Describes a model for training.
using model_builder = model (*)(const model_options&);

/// The built-in models by name. Unless noted otherwise, they are trained by
/// momentum with learning rate 0.01 and mu 0.9:
///
/// - mlp: 784-512-256-10 with ReLU
/// - lenet: two convolutions with pooling, two fully connected layers; 28x28
/// - digits: four convolutions with dropout for the 8x8 digits of data/digits,
///   pixels in [0, 1]; Adam with learning rate 0.001. After 30 epochs on the
///   1,500 training digits, 1 of 297 held-out digits is misclassified (median
///   of 9 seeds)
/// - resnet8: four channels, 32x32, for tests; resnet18: the CIFAR variant
/// - resnet50, resnext50 (32 groups): 224x224, 1000 classes
/// - word2vec: N-gram net of four words with a shared sparse embedding
/// - gpt: four blocks of causal attention, 128 tokens, vocabulary of 256
/// - widedeep: predicts clicks from 26 sparse slots and 13 dense features; SGD
std::map<std::string, model_builder, std::less<>> models();

/// Builds a model. Throws error(not_found) listing the known names.
model build_model(std::string_view name, const model_options& options = {});

} // namespace troupe::graph
