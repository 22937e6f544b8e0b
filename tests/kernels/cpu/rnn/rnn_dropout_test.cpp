// SPDX-License-Identifier: Apache-2.0
// Dropout between the layers of `rnn`: random masks cannot be Paddle's, so what
// is tested is which elements are dropped, where, and that the gradient is that
// of the same mask. With probabilities 0 and 1: tests/paddle.
#include <support/op_runner.hpp>

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.rnn_dropout") {

namespace {

using doubles = std::vector<double>;

struct net {
  std::int64_t steps = 2;
  std::int64_t batch = 3;
  std::int64_t width = 4; // of the input and hidden
  std::int64_t layers = 3;
  float probability = 0.5f;
};

attribute_map attributes_of(const net& n, const char* mode) {
  return {{"mode", std::string{mode}},
          {"hidden_size", static_cast<std::int32_t>(n.width)},
          {"num_layers", static_cast<std::int32_t>(n.layers)},
          {"dropout_prob", n.probability}};
}

op_value identity(std::int64_t n) {
  op_value value{.dims = {n, n},
                 .elements = doubles(static_cast<std::size_t>(n * n))};
  for (std::int64_t i = 0; i < n; ++i)
    value.elements[static_cast<std::size_t>(i * n + i)] = 1;
  return value;
}

op_value zeros(const shape& dims) {
  return values_of(dims, doubles(static_cast<std::size_t>(dims.numel())));
}

op_case forward(const net& n, const char* mode, std::vector<op_value> weights) {
  return {
    .type = "rnn",
    .inputs = {{"Input",
                {random_values({n.steps, n.batch, n.width}, 1, 0.5, 1)}},
               {"PreState", {zeros({n.layers, n.batch, n.width})}},
               {"WeightList", std::move(weights)}},
    .attributes = attributes_of(n, mode),
    .outputs = {{"Out", 1}, {"State", 1}, {"Reserve", 1}, {"DropoutState", 1}},
    .step = {.step = 4,
             .seed = 9,
             .shard_samples = n.batch,
             .batch_samples = n.batch}};
}

/// Each layer gives what it reads: positive numbers pass through.
op_case passing(const net& n) {
  std::vector<op_value> weights;
  for (std::int64_t i = 0; i < n.layers; ++i) {
    weights.push_back(identity(n.width));
    weights.push_back(zeros({n.width, n.width}));
  }
  weights.resize(static_cast<std::size_t>(4 * n.layers), zeros({n.width}));
  return forward(n, "RNN_RELU", std::move(weights));
}

op_case learning(const net& n) {
  std::vector<op_value> weights;
  for (std::uint64_t i = 0; i < 4 * static_cast<std::uint64_t>(n.layers); ++i)
    weights.push_back(i < 2 * static_cast<std::uint64_t>(n.layers)
                        ? random_values({n.width, n.width}, i + 10)
                        : random_values({n.width}, i + 10));
  return forward(n, "RNN_TANH", std::move(weights));
}

op_value run(const op_case& c, const char* slot) {
  return run_op(cpu_kernels(), c).at(slot)[0];
}

doubles mask_of(const op_case& c) {
  return run(c, "DropoutState").elements;
}

double weighed(const op_case& c, const doubles& weights) {
  const auto out = run(c, "Out").elements;
  double total = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    total += out[i] * weights[i];
  return total;
}

} // namespace

TEST_CASE("one mask drops the outputs of all layers but the last") {
  const auto c = passing({.probability = 0.25f});
  const auto values = run_op(cpu_kernels(), c);
  const auto& x = c.inputs.at("Input")[0].elements;
  const auto& out = values.at("Out")[0].elements;
  const auto& mask = values.at("DropoutState")[0];
  CHECK(to_string(mask.dims) == "[2, 3, 4]");
  CHECK(mask.type == dtype::uint8);
  CHECK(std::ranges::count(mask.elements, 0) > 0);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(
      out[i]
      == doctest::Approx(x[i] * mask.elements[i] / 0.75 / 0.75).epsilon(1e-6));
}

TEST_CASE("as many elements are dropped as asked for") {
  const auto mask = mask_of(passing(
    {.steps = 20, .batch = 50, .width = 20, .layers = 2, .probability = 0.3f}));
  const auto dropped = std::ranges::count(mask, 0);
  CHECK(std::abs(static_cast<double>(dropped) / 20'000 - 0.3) < 0.016);
}

TEST_CASE("a mask belongs to step, seed and op") {
  const net n{.steps = 4, .batch = 4};
  const auto c = passing(n);
  CHECK(mask_of(c) == mask_of(c));
  auto later = c;
  later.step.step = 5;
  CHECK(mask_of(later) != mask_of(c));
  auto seeded = c;
  seeded.attributes.set("seed", 3);
  CHECK(mask_of(seeded) != mask_of(c));
}

TEST_CASE("devices draw the mask of their samples in the whole batch") {
  const net n{.steps = 3, .batch = 7};
  const auto whole = mask_of(passing(n));
  for (const auto& [first, count] : {std::pair{0, 4}, std::pair{4, 3}}) {
    auto part = n;
    part.batch = count;
    auto c = passing(part);
    c.step.batch_samples = n.batch;
    c.step.first_sample = first;
    const auto mask = mask_of(c);
    for (std::int64_t t = 0; t < n.steps; ++t)
      CHECK(std::equal(mask.begin() + t * count * n.width,
                       mask.begin() + (t + 1) * count * n.width,
                       whole.begin() + (t * n.batch + first) * n.width));
  }
}

TEST_CASE("the gradient is that of the same mask") {
  auto c = learning({.steps = 2, .batch = 2, .width = 3});
  c.gradient = gradient_slots{
    {"Out"},
    {"Input", "PreState", "WeightList", "Out", "DropoutState", "Reserve"},
    {"Input", "PreState", "WeightList"}};
  const auto back = backward_of(c, run_op(cpu_kernels(), c));
  const auto gradients = run_op(cpu_kernels(), back);
  const auto& weights = back.inputs.at("Out@GRAD")[0].elements;
  constexpr double step = 1.0 / 128;
  for (const char* slot : {"Input", "PreState", "WeightList"})
    for (std::size_t k = 0; k < c.inputs.at(slot).size(); ++k) {
      const auto& gradient = gradients.at(slot + std::string("@GRAD"))[k];
      auto& elements = c.inputs.at(slot)[k].elements;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const double at = elements[i];
        elements[i] = at + step;
        const double above = weighed(c, weights);
        elements[i] = at - step;
        const double below = weighed(c, weights);
        elements[i] = at;
        CAPTURE(slot);
        CAPTURE(k);
        CHECK(std::abs(gradient.elements[i] - (above - below) / (2 * step))
              < 2e-3);
      }
    }
}

TEST_CASE("a gradient without mask is refused") {
  auto c = learning({});
  c.gradient = gradient_slots{
    {"Out"}, {"Input", "PreState", "WeightList", "Out", "Reserve"}, {"Input"}};
  const auto back = backward_of(c, run_op(cpu_kernels(), c));
  CHECK_THROWS_AS(run_op(cpu_kernels(), back), error);
}
} // TEST_SUITE("kernels.cpu.rnn_dropout")

} // namespace troupe::test
