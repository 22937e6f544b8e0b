// SPDX-License-Identifier: Apache-2.0
// Learns y = 2x with two devices, which needs every layer of the library.
#include <troupe/troupe.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>

using namespace troupe;

// What the one header brings beside what main() uses; the linker must find it.
[[maybe_unused]] const auto all_of_it =
  std::tuple{&spawn_trainer, &spawn_predictor, &graph::add_op,
             &graph::find_wrong_gradient, &make_prefetching_source};

int main() {
  if (std::string{version()} != TROUPE_VERSION)
    return 1;
  graph::network net;
  auto x = net.data("x", {-1, 1});
  auto y = net.data("y", {-1, 1});
  auto error_squared = layers::square(layers::sub(layers::fc(x, 1), y));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(layers::mean(error_squared));

  arena memory(make_host_memory_source());
  tensor xs = tensor::make(memory, {8, 1}, dtype::float32);
  tensor ys = tensor::make(memory, {8, 1}, dtype::float32);
  for (int i = 0; i < 8; ++i) {
    xs.data<float>()[i] = static_cast<float>(i) / 4 - 1;
    ys.data<float>()[i] = 2 * xs.data<float>()[i];
  }

  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = std::make_shared<scope>();
  run_startup(net.startup, *options.parameters);
  executor exe(net.main, options);
  double loss = 0;
  for (int step = 0; step < 200; ++step)
    loss = exe.run({{"x", xs}, {"y", ys}}).loss;
  std::printf("loss %.2e\n", loss);
  return std::isfinite(loss) && loss < 1e-3 ? 0 : 1;
}
