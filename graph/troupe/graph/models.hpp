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

/// What a step of a model feeds into one variable.
struct model_feed {
  std::string name;
  shape dims; ///< -1 for the batch
  dtype type = dtype::float32;
  std::int64_t below = 0; ///< integers lie in [0, below); 0 for real numbers
};

/// A network by name, ready to be trained.
struct model {
  std::string name;
  program startup;
  program main; ///< forward, backward and optimizer
  program test; ///< forward in evaluation mode
  std::string loss;
  std::string accuracy; ///< empty if it does not classify
  std::vector<model_feed> feeds;
  std::int64_t batch = 1; ///< default, over all devices
};

/// Variations of a built-in model.
struct model_options {
  /// resnet8, resnet18, resnet50, resnext50: with batch normalisation, else
  /// convolutions with bias.
  bool batch_norm = true;
  /// digits: share of dropped activations.
  float dropout = 0.5f;
  /// Completes the network; empty: the model's own optimizer.
  std::function<void(const variable_ref& loss)> minimize = {};
};

using model_builder = model (*)(const model_options&);

/// The built-in models by name. All are trained by momentum with rate 0.01 and
/// mu 0.9, if not said otherwise:
///
/// - mlp: 784-512-256-10 with ReLU
/// - lenet: two convolutions with pooling, two fully connected layers; 28x28
/// - digits: four convolutions with dropout for the 8x8 digits of data/digits,
///   pixels in [0, 1]; Adam with rate 0.001. 30 epochs of the 1,500 training
///   digits leave 1 of 297 held-out ones wrong (median of 9 seeds)
/// - resnet8: four channels, 32x32, for tests; resnet18: the CIFAR form
/// - resnet50, resnext50 (32 groups): 224x224, 1000 classes
/// - word2vec: N-gram net of four words with a shared sparse embedding
/// - gpt: four blocks of causal attention, 128 tokens of 256
/// - widedeep: 26 sparse slots and 13 dense features, click or no click; SGD
std::map<std::string, model_builder, std::less<>> models();

/// Builds a model. Throws error(not_found) listing the names.
model build_model(std::string_view name, const model_options& options = {});

} // namespace troupe::graph
