// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/data_parallel.hpp>

#include <support/caught.hpp>
#include <training/data_parallel/module_nets.hpp>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.data_parallel.second_derivatives") {

namespace {

tensor ones(const shape& dims) {
  return tensor_of(dims, floats(static_cast<std::size_t>(dims.numel()), 1));
}

/// Numbers without pattern in [-1, 1].
tensor numbers(const shape& dims, int seed) {
  auto made = counting(dims, static_cast<float>(10 * seed));
  for (auto& v : made.values<float>())
    v = std::sin(v * v + 3 * v + 1);
  return made;
}

double product(const tensor& a, const tensor& b) {
  double sum = 0;
  for (std::size_t i = 0; i < values_of(a).size(); ++i)
    sum += static_cast<double>(values_of(a)[i])
           * static_cast<double>(values_of(b)[i]);
  return sum;
}

/// The sum over ddx * dx, where dx is the gradient of a module's first input.
struct penalty {
  std::shared_ptr<graph_module> of;
  tensor x, dy, ddx;

  double at(data_parallel& model) const {
    return product(model.forward(x).backward({dy}).outputs[0], ddx);
  }
  /// The gradients for dy, x, and all parameters.
  tensors gradients(data_parallel& model) const {
    const auto first = model.forward(x).backward({dy});
    of->zero_gradients();
    auto found = first.backward({ddx}).outputs;
    for (auto& name : of->parameters())
      found.push_back(gradient_of(*of, name));
    of->zero_gradients();
    return found;
  }
  /// By central differences.
  double difference(data_parallel& model, tensor& in, std::size_t i) const {
    const auto step = 0.01f;
    auto& value = in.values<float>()[i];
    const auto middle = value;
    value = middle + step;
    const auto above = at(model);
    value = middle - step;
    const auto below = at(model);
    value = middle;
    return (above - below) / (2 * static_cast<double>(step));
  }
};

/// The largest difference between gradients and differences.
double error_of(const penalty& p, data_parallel& model) {
  const auto found = p.gradients(model);
  std::vector<tensor> inputs{p.dy, p.x};
  for (auto& name : p.of->parameters()) {
    // In memory of its own, so that it can be changed.
    auto& value = p.of->values().var(name);
    value.set(
      tensor_of(value.as_tensor().dims(), values_of(value.as_tensor())));
    inputs.push_back(value.as_tensor());
  }
  REQUIRE(found.size() == inputs.size());
  double most = 0;
  for (std::size_t n = 0; n < inputs.size(); ++n)
    for (std::size_t i = 0; i < values_of(inputs[n]).size(); i += 3)
      most = std::max(most, std::abs(static_cast<double>(values_of(found[n])[i])
                                     - p.difference(model, inputs[n], i)));
  return most;
}

} // namespace

TEST_CASE("the gradients of a gradient penalty are exactly those of PyTorch's "
          "test") {
  // test_data_parallel_function_deletion: the mean of the gradients of a linear
  // layer's inputs, all of which are its weights
  graph::network net;
  auto x = net.data("x", {-1, 4});
  auto y = layers::fc(x, 1);
  const auto linear = make_module(net, {x}, {y});
  for (auto on : {"cpu:1", "cpu:2"}) {
    data_parallel model{linear, ids(on)};
    const auto first = model.forward(ones({2, 4})).backward({ones({2, 1})});
    linear->zero_gradients();
    const auto made = first.backward({tensor_of({2, 4}, floats(8, 0.125f))});
    CHECK(values_of(gradient_of(*linear, "fc_0.w_0"))
          == floats{0.25f, 0.25f, 0.25f, 0.25f});
    CHECK(values_of(gradient_of(*linear, "fc_0.b_0")) == floats{0});
    REQUIRE(made.outputs.size() == 2);
    CHECK(made.outputs[0].dims() == shape{2, 1});
    CHECK_FALSE(made.outputs[1]); // the gradient does not depend on x
  }
}

TEST_CASE_FIXTURE(mlp, "second derivatives are those of differences, and on "
                       "two and three devices those of one, for odd batches") {
  const penalty p{net_module, numbers({5, 4}, 1), numbers({5, 3}, 2),
                  numbers({5, 4}, 3)};
  data_parallel one{net_module, ids("cpu")};
  CHECK(error_of(p, one) < 2e-3);
  const auto expected = p.gradients(one);
  for (auto on : {"cpu:2", "cpu:3"}) {
    data_parallel several{net_module, ids(on)};
    const auto found = p.gradients(several);
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(distance(found[i], expected[i]) < 1e-6);
  }
}

TEST_CASE("a convolutional net has second derivatives") {
  graph::network net;
  auto x = net.data("x", {-1, 2, 4, 4});
  auto h = layers::conv2d(x, {.filters = 3, .padding = 1, .act = "sigmoid"});
  const auto conv = make_module(net, {x}, {layers::fc(layers::square(h), 1)});
  const penalty p{conv, numbers({3, 2, 4, 4}, 1), numbers({3, 1}, 2),
                  numbers({3, 2, 4, 4}, 3)};
  data_parallel model{conv, ids("cpu:2")};
  CHECK(error_of(p, model) < 2e-3);
}

TEST_CASE_FIXTURE(mlp, "the module's gradients are added to, and a pass can be "
                       "differentiated again, with the parameters that it "
                       "had") {
  data_parallel model{net_module, ids("cpu:2")};
  const auto first =
    model.forward(torch["mlp5.x"]).backward({torch["mlp5.y.grad"]});
  net_module->zero_gradients();
  const auto ddx = numbers({5, 4}, 3);
  first.backward({ddx});
  const auto once = values_of(gradient_of(*net_module, "fc_0.w_0"));
  set(*net_module, "fc_1.w_0", counting({6, 3}));
  model.forward(torch["mlp2.x"]).backward({torch["mlp2.y.grad"]});
  net_module->zero_gradients();
  first.backward({ddx});
  first.backward({ddx});
  const auto twice = values_of(gradient_of(*net_module, "fc_0.w_0"));
  for (std::size_t i = 0; i < once.size(); ++i)
    CHECK(twice[i] == doctest::Approx(2 * once[i]));
}

TEST_CASE("what has no second derivative is refused in one line that names "
          "the op") {
  graph::network net;
  auto x = net.data("x", {-1, 2});
  const auto soft = make_module(net, {x}, {layers::softmax(x)});
  data_parallel model{soft, ids("cpu:2")};
  const auto first = model.forward(ones({2, 2})).backward({ones({2, 2})});
  const auto e = caught([&] { first.backward({ones({2, 2})}); });
  CHECK(e.code() == errc::unsupported_op);
  CHECK(e.where().op_type == "softmax_grad");
  CHECK(says(e, "softmax_grad"));
}

TEST_CASE_FIXTURE(mlp, "second gradients that do not fit, and third ones, are "
                       "refused") {
  data_parallel model{net_module, ids("cpu:2")};
  const auto first =
    model.forward(torch["mlp5.x"]).backward({torch["mlp5.y.grad"]});
  CHECK(caught([&] { first.backward({}); }).code() == errc::invalid_argument);
  CHECK(says(caught([&] { first.backward({tensor{}}); }),
             "no input's gradient has a gradient"));
  auto e = caught([&] { first.backward({ones({5, 3})}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(e.where().variable == "x");
  const auto second = first.backward({first.outputs});
  e = caught([&] { second.backward(second.outputs); });
  CHECK(e.code() == errc::unsupported_op);
  CHECK(says(e, "there are no third derivatives"));
  data_parallel without{make_module(net, {x}, {y}, false), ids("cpu:2")};
  const auto none =
    without.forward(torch["mlp5.x"]).backward({torch["mlp5.y.grad"]});
  CHECK(says(caught([&] {
               none.backward({ones({5, 4})});
             }),
             "no gradient of an input is wanted"));
}

TEST_CASE("a buffer can have a gradient, as in PyTorch's test") {
  // test_data_parallel_buffers_requiring_grad: x * t + t, where one t has a
  // gradient
  graph::network net;
  auto x = net.data("x", {-1, 4});
  const graph::initializer::constant zero{0};
  auto t = net.state("t", {4}, zero),
       constant = net.state("constant", {4}, zero);
  auto d =
    describe_module(net, {x}, {layers::add(layers::mul(x, t), constant)});
  d.buffer_gradients = {"t"};
  const auto made = std::make_shared<graph_module>(d);
  CHECK(made->buffers() == std::vector<std::string>{"constant", "t"});
  set(*made, "t", numbers({4}, 1));
  set(*made, "constant", numbers({4}, 1));
  data_parallel model{made, ids("cpu:2")};
  const auto in = numbers({3, 4}, 2), dy = numbers({3, 4}, 3);
  model.forward(in).backward({dy});
  const auto found = values_of(gradient_of(*made, "t"));
  for (std::size_t i = 0; i < 4; ++i) {
    float expected = 0;
    for (std::size_t row = 0; row < 3; ++row)
      expected += values_of(in)[row * 4 + i] * values_of(dy)[row * 4 + i];
    CHECK(found[i] == doctest::Approx(expected).epsilon(1e-6));
  }
  CHECK(caught([&] { made->gradient("constant"); }).code() == errc::not_found);
  for (auto name : {"x", "nowhere"}) {
    d.buffer_gradients = {name};
    const auto e = caught([&] { graph_module{d}; });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(e.where().variable == name);
  }
}

TEST_CASE("the statistics of a batch norm cannot have a gradient") {
  graph::network net;
  auto x = net.data("x", {-1, 4});
  auto d = describe_module(net, {x}, {layers::batch_norm(x)});
  const auto name = graph_module{d}.buffers().at(0);
  d.buffer_gradients = {name};
  const auto e = caught([&] { graph_module{d}; });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.where().variable == name);
  CHECK(e.where().op_type == "batch_norm");
}

} // TEST_SUITE("training.data_parallel.second_derivatives")
