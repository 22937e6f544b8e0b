// SPDX-License-Identifier: Apache-2.0
#include <actors/small_nets.hpp>

#include <troupe/base/random.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>
#include <troupe/graph/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace troupe::test {

namespace {

arena& host_memory() {
  static arena memory{make_host_memory_source()};
  return memory;
}

float centred(splitmix64& draw) {
  return static_cast<float>(draw() >> 40) / float(1 << 23) - 1.0f;
}

/// Images with `classes` bands of rows. The label is the number of the
/// brightest band.
feed_map banded_images(std::uint64_t seed, const shape& dims,
                       std::int64_t classes) {
  splitmix64 draw{seed * 7919 + 17};
  auto image = tensor::make(host_memory(), dims, dtype::float32);
  auto label = tensor::make(host_memory(), {dims[0], 1}, dtype::int64);
  const auto pixels = dims.numel(1, dims.rank());
  auto* x = image.data<float>();
  for (std::int64_t n = 0; n < dims[0]; ++n) {
    const auto c = static_cast<std::int64_t>(
      draw.below(static_cast<std::uint64_t>(classes)));
    label.values<std::int64_t>()[static_cast<std::size_t>(n)] = c;
    for (std::int64_t i = 0; i < pixels; ++i)
      x[n * pixels + i] =
        0.3f * centred(draw) + (i * classes / pixels == c ? 1.0f : 0.0f);
  }
  feed_map feeds;
  feeds["image"] = image;
  feeds["label"] = label;
  return feeds;
}

small_net finish(std::string name, graph::network& net,
                 const graph::variable_ref& loss) {
  small_net made;
  made.name = std::move(name);
  made.main = net.main;
  made.startup = net.startup;
  made.evaluation = net.test();
  made.loss = loss.name();
  return made;
}

graph::variable_ref classify(const graph::variable_ref& h,
                             const graph::variable_ref& label,
                             std::int64_t classes) {
  return layers::mean(
    layers::softmax_with_cross_entropy(layers::fc(h, classes), label));
}

graph::variable_ref conv(const graph::variable_ref& x, std::int64_t filters,
                         bool batch_norm, const std::string& act) {
  auto h = layers::conv2d(x, {.filters = filters,
                              .kernel = 3,
                              .padding = 1,
                              .act = batch_norm ? "" : act,
                              .with_bias = !batch_norm});
  return batch_norm ? layers::batch_norm(h, {.act = act}) : h;
}

small_net perceptron(const std::string& name, std::int64_t inputs,
                     std::int64_t first, std::int64_t second) {
  graph::network net;
  auto image = net.data("image", {-1, inputs});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto h = layers::fc(image, first, {.act = "relu"});
  h = layers::fc(h, second, {.act = "tanh"});
  auto loss = classify(h, label, 4);
  optimizer::momentum({.learning_rate = 0.05f, .mu = 0.9f}).minimize(loss);
  auto made = finish(name, net, loss);
  made.batch = [inputs](std::uint64_t seed, std::int64_t n) {
    return banded_images(seed, {n, inputs}, 4);
  };
  return made;
}

} // namespace

std::shared_ptr<scope> small_net::parameters(std::uint64_t seed) const {
  auto made = std::make_shared<scope>();
  run_startup(startup, *made, seed);
  return made;
}

small_net make_mlp() {
  return perceptron("mlp", 16, 24, 16);
}

small_net make_wide_mlp() {
  return perceptron("wide_mlp", 160, 140, 170);
}

small_net make_lenet() {
  graph::network net;
  auto image = net.data("image", {-1, 1, 12, 12});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto h = layers::conv2d(image, {.filters = 4, .kernel = 3});
  h = layers::relu(layers::pool2d(h));
  h = layers::conv2d(h, {.filters = 6, .kernel = 2});
  h = layers::relu(layers::pool2d(h));
  auto loss = classify(layers::fc(h, 16, {.act = "relu"}), label, 4);
  optimizer::momentum({.learning_rate = 0.05f, .mu = 0.9f}).minimize(loss);
  auto made = finish("lenet", net, loss);
  made.batch = [](std::uint64_t seed, std::int64_t n) {
    return banded_images(seed, {n, 1, 12, 12}, 4);
  };
  return made;
}

small_net make_resnet(bool batch_norm) {
  graph::network net;
  auto image = net.data("image", {-1, 2, 8, 8});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto h = conv(image, 16, batch_norm, "relu");
  for (int block = 0; block < 2; ++block) {
    auto inner = conv(h, 16, batch_norm, "relu");
    h = layers::relu(layers::add(conv(inner, 16, batch_norm, ""), h));
  }
  auto pooled = layers::pool2d(h, {.kernel = 2, .stride = 2, .average = true});
  auto loss = classify(pooled, label, 2);
  optimizer::sgd({.learning_rate = 0.05f}).minimize(loss);
  auto made = finish(batch_norm ? "resnet_bn" : "resnet", net, loss);
  made.batch = [](std::uint64_t seed, std::int64_t n) {
    return banded_images(seed, {n, 2, 8, 8}, 2);
  };
  return made;
}

small_net make_word2vec() {
  constexpr std::int64_t vocabulary = 40;
  graph::network net;
  std::vector<graph::variable_ref> embedded;
  for (auto* name : {"first", "second", "third"})
    embedded.push_back(
      layers::reshape(layers::embedding(net.data(name, {-1, 1}, dtype::int64),
                                        {.rows = vocabulary,
                                         .width = 8,
                                         .is_sparse = true,
                                         .weight = {.name = "shared_w"}}),
                      {-1, 8}));
  auto next = net.data("next", {-1, 1}, dtype::int64);
  auto h =
    layers::fc(layers::concat(embedded, {.axis = 1}), 16, {.act = "sigmoid"});
  auto loss = classify(h, next, vocabulary);
  optimizer::sgd({.learning_rate = 0.5f}).minimize(loss);
  auto made = finish("word2vec", net, loss);
  made.batch = [](std::uint64_t seed, std::int64_t n) {
    splitmix64 draw{seed * 104729 + 5};
    feed_map feeds;
    for (auto* name : {"first", "second", "third", "next"})
      feeds[name] = tensor::make(host_memory(), {n, 1}, dtype::int64);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const auto start = static_cast<std::int64_t>(draw.below(8));
      std::int64_t word = start;
      for (auto* name : {"first", "second", "third", "next"})
        feeds[name].values<std::int64_t>()[i] = word++ % vocabulary;
    }
    return feeds;
  };
  return made;
}

small_net make_dropout_net() {
  graph::network net;
  auto image = net.data("image", {-1, 16});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto h = layers::fc(image, 32, {.act = "relu"});
  h = layers::dropout(h, {.probability = 0.3f});
  auto loss = classify(h, label, 4);
  optimizer::adam({.learning_rate = 0.01f}).minimize(loss);
  auto made = finish("dropout", net, loss);
  made.batch = [](std::uint64_t seed, std::int64_t n) {
    return banded_images(seed, {n, 16}, 4);
  };
  return made;
}

training train(const small_net& net, executor_options options,
               std::span<const std::int64_t> batches) {
  training t;
  t.parameters = net.parameters();
  options.parameters = t.parameters;
  executor exe{net.main, std::move(options)};
  std::vector<step_id> under_way;
  for (auto samples : batches)
    under_way.push_back(exe.submit(net.batch(under_way.size(), samples)));
  for (auto id : under_way)
    t.losses.push_back(exe.wait(id).loss);
  exe.synchronize_parameters();
  t.peak_bytes = exe.stats().peak_bytes.front();
  return t;
}

std::vector<float> fetch_once(executor& exe, const small_net& net,
                              const std::string& name) {
  const auto merged = exe.run(net.batch(1, 8), std::vector{name}).merged(name);
  const auto elements = merged.values<float>();
  return {elements.begin(), elements.end()};
}

std::shared_ptr<const kernel_table> kernels_without(std::string_view op_type) {
  auto few = std::make_shared<kernel_table>();
  for (const auto& type : cpu_kernels().op_types(device_kind::cpu))
    if (type != op_type)
      few->add(type, device_kind::cpu, [type](const attribute_map& attributes) {
        return cpu_kernels().make(type, device_kind::cpu, attributes);
      });
  return few;
}

std::vector<float> values_of(const scope& parameters) {
  std::vector<float> all;
  arena host{make_host_memory_source()};
  for (auto& name : parameters.names()) {
    const auto* v = parameters.find(name);
    if (!v->is_tensor() || v->as_tensor().type() != dtype::float32)
      continue;
    const auto value = parameters.to_host(v->as_tensor(), host);
    const auto values = value.values<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::ptrdiff_t count_laid_out(const scope& parameters) {
  return std::ranges::count_if(parameters.names(), [&](auto& name) {
    const auto* v = parameters.find(name);
    return v->is_tensor() && v->as_tensor() && !v->as_tensor().is_plain();
  });
}

bool bit_equal(const scope& a, const scope& b) {
  const auto x = values_of(a);
  const auto y = values_of(b);
  return a.names() == b.names() && x.size() == y.size()
         && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

double relative_difference(const std::vector<float>& a,
                           const std::vector<float>& b, double floor) {
  if (a.size() != b.size())
    return HUGE_VAL;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    worst = std::max(worst, std::abs(x - y)
                              / std::max({std::abs(x), std::abs(y), floor}));
  }
  return worst;
}

} // namespace troupe::test
