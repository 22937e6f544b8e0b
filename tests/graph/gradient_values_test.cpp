// SPDX-License-Identifier: Apache-2.0
#include "program_runner.hpp"

#include <troupe/graph/gradients.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe;
using graph::testing::gradient_error;
using graph::testing::program_runner;

TEST_SUITE("graph.gradient_values") {

namespace {

/// Numbers without pattern in [-1, 1].
std::vector<double> numbers(std::size_t count) {
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i)
    result[i] = std::sin(static_cast<double>(i * i + 3 * i + 1));
  return result;
}

void feed(program_runner& runner, const std::string& name, const shape& dims) {
  runner.set(name, dims, numbers(static_cast<std::size_t>(dims.numel())));
}

/// A loss that weighs all elements of x differently.
graph::variable_ref weighted_loss(const graph::variable_ref& x) {
  return layers::mean(layers::square(
    layers::add(x, layers::scale(x, {.scale = 0.3f, .bias = 0.7f}))));
}

double error_of(graph::network& net, const graph::variable_ref& loss,
                program_runner& runner) {
  graph::append_backward(net.main, loss.name(), net.schemas());
  return gradient_error(runner, net, loss.name());
}

} // namespace

TEST_CASE("gradients of a convolutional net equal finite differences") {
  graph::network net;
  auto image = net.data("image", {-1, 2, 6, 6});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto h = layers::conv2d(image, {.filters = 4, .padding = 1, .act = "tanh"});
  h = layers::batch_norm(h, {.act = "sigmoid"});
  h = layers::conv2d(h, {.filters = 4, .stride = 2, .groups = 4});
  h = layers::pool2d(h, {.average = true});
  auto loss = layers::cross_entropy(layers::fc(h, 3), label);
  program_runner runner;
  feed(runner, "image", {5, 2, 6, 6});
  runner.set_ids("label", {5, 1}, {0, 2, 1, 1, 0});
  CHECK(error_of(net, loss, runner) < 1e-7);
}

TEST_CASE("gradients of an attention block equal finite differences") {
  graph::network net;
  auto x = net.data("x", {-1, 3, 4});
  auto h = layers::layer_norm(layers::fc(x, 4, {.num_flatten_dims = 2}),
                              {.begin_norm_axis = 2});
  auto qkv = layers::split(layers::fc(h, 12, {.num_flatten_dims = 2}),
                           {.parts = 3, .axis = 2});
  auto heads = [](const graph::variable_ref& v) {
    return layers::transpose(layers::reshape(v, {0, 3, 2, 2}), {0, 2, 1, 3});
  };
  auto scores =
    layers::matmul(heads(qkv[0]), heads(qkv[1]), {.transpose_y = true});
  auto mixed = layers::matmul(layers::softmax(scores), heads(qkv[2]));
  mixed = layers::reshape(layers::transpose(mixed, {0, 2, 1, 3}), {0, 3, 4});
  auto loss = weighted_loss(layers::gelu(layers::add(mixed, h)));
  program_runner runner;
  feed(runner, "x", {2, 3, 4});
  CHECK(error_of(net, loss, runner) < 1e-7);
}

TEST_CASE("a table that is read several times and sparsely gets the sum of its "
          "gradients") {
  for (bool is_sparse : {true, false}) {
    CAPTURE(is_sparse);
    graph::network net;
    auto first = net.data("first", {-1, 1}, dtype::int64);
    auto second = net.data("second", {-1, 1}, dtype::int64);
    const layers::embedding_options table{.rows = 6,
                                          .width = 3,
                                          .is_sparse = is_sparse,
                                          .weight = {.name = "table"}};
    auto both = layers::concat(
      {layers::embedding(first, table), layers::embedding(second, table)},
      {.axis = 1});
    auto loss = weighted_loss(layers::fc(layers::flatten(both), 4));
    program_runner runner;
    runner.set_ids("first", {3, 1}, {0, 5, 5});
    runner.set_ids("second", {3, 1}, {5, 1, 2});
    CHECK(error_of(net, loss, runner) < 1e-7);
  }
}

TEST_CASE("a variable with several readers gets the sum of its gradients, also "
          "twice in one op") {
  graph::network net;
  auto h = layers::fc(net.data("x", {-1, 4}), 4, {.act = "tanh"});
  auto twice = layers::mul(h, h);
  auto joined = layers::concat({h, twice, h}, {.axis = 1});
  auto total = layers::sum({layers::fc(joined, 4), h, layers::sub(twice, h)});
  program_runner runner;
  feed(runner, "x", {3, 4});
  CHECK(error_of(net, weighted_loss(total), runner) < 1e-7);
}

TEST_CASE("an output of split that leads nowhere has gradient zero") {
  graph::network net;
  auto parts = layers::split(layers::fc(net.data("x", {-1, 3}), 6),
                             {.axis = 1, .sections = {2, 3, 1}});
  program_runner runner;
  feed(runner, "x", {2, 3});
  CHECK(error_of(net, weighted_loss(parts[1]), runner) < 1e-7);
}

TEST_CASE("gradients of slices, reductions, assignments and dropout "
          "equal finite differences") {
  graph::network net;
  auto h = layers::fc(net.data("x", {-1, 4}), 8);
  h = layers::dropout(layers::assign(h), {.probability = 0.4f});
  auto low = layers::slice(h, {.axes = {1}, .starts = {0}, .ends = {-3}});
  auto sums = layers::reduce_sum(low, {.axes = {1}, .keep_dims = true});
  auto means = layers::reduce_mean(layers::sigmoid(h), {.axes = {1}});
  auto column = layers::reshape(means, {-1, 1});
  auto loss = weighted_loss(layers::add(layers::mul(sums, column), low));
  program_runner runner;
  feed(runner, "x", {3, 4});
  CHECK(error_of(net, loss, runner) < 1e-7);
}

TEST_CASE("an optimizer step lowers the loss") {
  auto loss_after_steps = [](auto optimizer) {
    graph::network net;
    auto x = net.data("x", {-1, 4});
    auto label = net.data("label", {-1, 1}, dtype::int64);
    auto loss = layers::cross_entropy(
      layers::fc(layers::relu(layers::fc(x, 8)), 2), label);
    optimizer.minimize(loss);
    program_runner runner;
    feed(runner, "x", {4, 4});
    runner.set_ids("label", {4, 1}, {0, 1, 1, 0});
    runner.run(net.startup);
    runner.run(net.main);
    const auto before = runner.scalar(loss.name());
    for (int i = 0; i < 20; ++i)
      runner.run(net.main);
    return runner.scalar(loss.name()) / before;
  };
  CHECK(loss_after_steps(optimizer::sgd({.learning_rate = 0.2f})) < 0.9);
  CHECK(loss_after_steps(optimizer::momentum({.learning_rate = 0.05f})) < 0.9);
  CHECK(loss_after_steps(optimizer::adam({.learning_rate = 0.02f})) < 0.9);
}

} // TEST_SUITE("graph.gradient_values")
