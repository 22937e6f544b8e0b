// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/training/training_program.hpp>

#include <cstdint>

namespace troupe::test {

/// A network that learns y = 2x.
/// @param act of its layer; with another one, it is another program
inline training_program make_line_program(const char* act = "") {
  graph::network net;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto far = layers::square(layers::sub(layers::fc(x, 1, {.act = act}), y));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(layers::mean(far));
  return make_training_program(net.startup, net.main);
}

/// Batches of its samples, the same for the same number.
class line_batches {
public:
  feed_map batch(std::uint64_t number, std::int64_t samples = 4) {
    auto x = tensor::make(memory_, {samples, 1}, dtype::float32);
    auto y = tensor::make(memory_, {samples, 1}, dtype::float32);
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto n = number * 7 + at * 3;
      x.values<float>()[at] = static_cast<float>(n % 11) / 11 - 0.5f;
      y.values<float>()[at] = 2 * x.values<float>()[at];
    }
    return {{"x", x}, {"y", y}};
  }

private:
  arena memory_{make_host_memory_source()};
};

} // namespace troupe::test
