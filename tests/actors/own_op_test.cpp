// SPDX-License-Identifier: Apache-2.0
#include <support/gaussian_op.hpp>
#include <troupe/actors/plain_executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.own_op") {

namespace {

/// A network with an own op in its middle.
struct bells {
  graph::op_schema_table schemas = graph::op_schemas();
  std::shared_ptr<kernel_table> kernels =
    std::make_shared<kernel_table>(cpu_kernels());
  std::unique_ptr<graph::network> net;
  arena memory{make_host_memory_source()};

  bells() {
    graph::add_op(schemas, *kernels, gaussian_op());
    net = std::make_unique<graph::network>(schemas);
    const auto x = net->data("x", {-1, 3});
    const auto out = layers::op("gaussian", {{"X", {layers::fc(x, 4)}}});
    optimizer::sgd({.learning_rate = 0.02f})
      .minimize(layers::mean(layers::fc(out.at("Out"), 1)));
  }
  std::shared_ptr<scope> parameters() const {
    auto values = std::make_shared<scope>();
    run_startup(net->startup, *values, 1);
    return values;
  }
  feed_map batch(float first) {
    auto x = tensor::make(memory, {5, 3}, dtype::float32);
    for (auto& v : x.values<float>())
      v = first += 0.125f;
    return {{"x", x}};
  }
};

} // namespace

TEST_CASE_FIXTURE(bells, "an own op trains on devices as on one") {
  plain_executor one{net->main,
                     {.parameters = parameters(), .kernels = kernels}};
  executor two{net->main,
               {.devices = parse_devices("cpu:2"),
                .parameters = parameters(),
                .kernels = kernels}};
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    const auto feeds = batch(-1);
    losses.push_back(one.run(feeds).loss);
    CHECK(two.run(feeds).loss == doctest::Approx(losses.back()).epsilon(1e-4));
  }
  CHECK(losses.back() < losses.front() - 0.1);
}

} // TEST_SUITE("actors.own_op")
