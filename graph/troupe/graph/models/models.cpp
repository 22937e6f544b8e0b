// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/models.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/models/builders.hpp>
#include <troupe/graph/optimizer.hpp>

#include <utility>

namespace troupe::graph {

void declare(network& net, const std::vector<model_feed>& feeds) {
  for (const auto& feed : feeds)
    net.data(feed.name, feed.dims, feed.type);
}

variable_ref input(network& net, const model_feed& feed) {
  return {net, feed.name};
}

std::vector<model_feed> image_feeds(const shape& image, std::int64_t classes) {
  return {{"image", image, dtype::float32, 0},
          {"label", {-1, 1}, dtype::int64, classes}};
}

model_parts classifier(std::string name, std::int64_t batch,
                       const variable_ref& logits,
                       std::vector<model_feed> feeds) {
  auto label = input(logits.net(), feeds[1]);
  auto loss = layers::cross_entropy(logits, label);
  auto accuracy = layers::accuracy(logits, label);
  return {std::move(name), batch, loss, accuracy.name(), std::move(feeds)};
}

model finish(network& net, model_parts parts, const model_options& options,
             const std::function<void(const variable_ref&)>& minimize) {
  model m;
  (options.minimize ? options.minimize : minimize)(parts.loss);
  m.name = std::move(parts.name);
  m.loss = parts.loss.name();
  m.accuracy = std::move(parts.accuracy);
  m.feeds = std::move(parts.feeds);
  m.batch = parts.batch;
  m.test = net.test();
  m.startup = std::move(net.startup);
  m.main = std::move(net.main);
  return m;
}

void minimize_by_momentum(const variable_ref& loss) {
  optimizer::momentum({.learning_rate = 0.01f, .mu = 0.9f}).minimize(loss);
}

std::map<std::string, model_builder, std::less<>> models() {
  return {
    {"mlp", build_mlp},
    {"lenet", build_lenet},
    {"digits", build_digits},
    {"resnet8", build_resnet8},
    {"resnet18", build_resnet18},
    {"resnet50", build_resnet50},
    {"resnext50", build_resnext50},
    {"word2vec", build_word2vec},
    {"gpt", build_gpt},
    {"widedeep", build_widedeep},
  };
}

model build_model(std::string_view name, const model_options& options) {
  const auto table = models();
  if (auto found = table.find(name); found != table.end())
    return found->second(options);
  std::string known;
  for (const auto& [each, builder] : table)
    known += (known.empty() ? "" : ", ") + each;
  throw error{errc::not_found, "no built-in model '" + std::string{name}
                                 + "'; there are " + known};
}

} // namespace troupe::graph
