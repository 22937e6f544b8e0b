// SPDX-License-Identifier: Apache-2.0
// A PyTorch script with DataParallel, carried over line by line:
// docs/data_parallel.md has both side by side. It learns handwritten digits.
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/kernels/io/idx.hpp>
#include <troupe/training/data_parallel/data_parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace {

using namespace troupe;

constexpr std::int64_t batch_size = 63; // not divisible by two

/// nn.CrossEntropyLoss(), whose first input has a gradient.
std::shared_ptr<graph_module> loss_module() {
  graph::network net;
  auto guess = net.data("guess", {-1, 10});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto made =
    describe_module(net, {guess, label}, {layers::cross_entropy(guess, label)});
  made.input_gradients = {"guess"};
  return std::make_shared<graph_module>(made);
}

using batch = std::pair<tensor, tensor>;

/// Images with pixels from 0 to 1, and labels.
batch read_samples(const labelled_images& part, arena& memory) {
  auto pixels = cast(part.images, dtype::float32, memory)
                  .reshaped({part.labels.numel(), 64});
  for (auto& pixel : pixels.values<float>())
    pixel /= 255;
  return {
    pixels,
    cast(part.labels, dtype::int64, memory).reshaped({part.labels.numel(), 1})};
}

std::vector<batch> batches_of(const batch& all) {
  std::vector<batch> made;
  const auto count = all.first.num_samples();
  for (std::int64_t i = 0; i < count; i += batch_size) {
    const auto n = std::min(batch_size, count - i);
    made.emplace_back(all.first.rows(i, n), all.second.rows(i, n));
  }
  return made;
}

/// The share of samples whose highest score is that of their label.
double accuracy(const tensor& scores, const tensor& labels) {
  const auto s = scores.values<float>();
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    const auto row = s.subspan(static_cast<std::size_t>(i) * 10, 10);
    right += std::ranges::max_element(row) - row.begin()
             == labels.values<std::int64_t>()[static_cast<std::size_t>(i)];
  }
  return static_cast<double>(right) / static_cast<double>(labels.numel());
}

void run() {
  arena memory{make_host_memory_source()};
  const auto digits = read_idx_folder("data/digits", memory);
  const auto batches = batches_of(read_samples(digits.train, memory));
  const auto [unseen, answers] = read_samples(digits.test, memory);
  auto one = tensor::make(memory, {1}, dtype::float32);
  one.values<float>()[0] = 1;

  graph::network net;
  auto pixels = net.data("pixels", {-1, 64});
  auto scores = layers::fc(layers::fc(pixels, 32, {.act = "tanh"}), 10);
  optimizer::sgd({.learning_rate = 0.5f}).apply_gradients(net);
  auto model_module =
    std::make_shared<graph_module>(describe_module(net, {pixels}, {scores}));
  data_parallel model{model_module, parse_devices("cpu:2")};
  data_parallel criterion{loss_module(), parse_devices("cpu")};

  for (int epoch = 0; epoch < 10; ++epoch) {
    double last = 0;
    for (auto& [x, y] : batches) {
      model_module->zero_gradients();
      const auto output = model.forward(x);
      const auto loss = criterion.forward(output.outputs[0], y);
      output.backward({loss.backward({one}).outputs[0]});
      model.update();
      last = loss.outputs[0].values<float>()[0];
    }
    std::printf("epoch %d loss %.4f\n", epoch, last);
  }
  std::printf("accuracy %.3f\n", accuracy(model.evaluate(unseen)[0], answers));
}

} // namespace

int main() try { run(); } catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
