// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/models.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// The builders behind `models()`, by file.
namespace troupe::graph {

// perceptrons.cpp
model build_mlp(const model_options& options);
model build_lenet(const model_options& options);
model build_digits(const model_options& options);

// residual.cpp
model build_resnet8(const model_options& options);
model build_resnet18(const model_options& options);
model build_resnet50(const model_options& options);
model build_resnext50(const model_options& options);

// embeddings.cpp
model build_word2vec(const model_options& options);
model build_widedeep(const model_options& options);

// gpt.cpp
model build_gpt(const model_options& options);

/// Properties of a model other than its network.
struct model_parts {
  std::string name;
  std::int64_t batch = 1;
  variable_ref loss;
  std::string accuracy = {};
  std::vector<model_feed> feeds;
};

/// Declares the inputs of `feeds` in the network.
void declare(network& net, const std::vector<model_feed>& feeds);

/// An input that `declare` has declared.
variable_ref input(network& net, const model_feed& feed);

/// Adds loss and accuracy of a classifier whose labels are `feeds[1]`.
model_parts classifier(std::string name, std::int64_t batch,
                       const variable_ref& logits,
                       std::vector<model_feed> feeds);

/// The inputs of an image classifier: image and label.
std::vector<model_feed> image_feeds(const shape& image, std::int64_t classes);

/// Adds the optimizer, derives the test program and moves the programs into the
/// model.
model finish(network& net, model_parts parts, const model_options& options,
             const std::function<void(const variable_ref&)>& minimize);

/// Momentum with learning rate 0.01 and mu 0.9.
void minimize_by_momentum(const variable_ref& loss);

} // namespace troupe::graph
