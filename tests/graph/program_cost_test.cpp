// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/program_cost.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::graph;

TEST_SUITE("graph.program_cost") {

namespace {

/// Work of the ops of one type.
graph::work of_type(const program& p, const program_cost& cost,
                    const std::string& type) {
  graph::work sum;
  for (std::size_t i = 0; i < cost.ops.size(); ++i)
    if (p.main().ops[i].type == type)
      sum = sum + cost.ops[i];
  return sum;
}

void train(const variable_ref& loss) {
  optimizer::sgd({.learning_rate = 0.1f}).minimize(loss);
}

constexpr double float_bytes = 4;

} // namespace

TEST_CASE("a fully connected layer multiplies and adds once per weight and "
          "sample") {
  network net;
  layers::fc(net.data("x", {-1, 7}), 3);
  const auto cost = count_cost(net.main, 5);
  CHECK(cost.ops.size() == net.main.main().ops.size());
  CHECK(cost.total().flops == 2 * 5 * 7 * 3);
}

TEST_CASE("each gradient of a product costs as much as the product") {
  network net;
  auto h = layers::fc(net.data("x", {-1, 7}), 3);
  train(layers::mean(layers::fc(h, 2)));
  const auto cost = count_cost(net.main, 5);
  CHECK(of_type(net.main, cost, "mul").flops == 2 * 5 * (7 * 3 + 3 * 2));
  // No gradient of the fed x.
  CHECK(of_type(net.main, cost, "mul_grad").flops
        == 2 * 5 * (7 * 3 + 2 * (3 * 2)));
}

TEST_CASE("an op that makes two gradients of a product counts twice") {
  network net;
  auto out = layers::fc(net.data("x", {-1, 7}), 3, {.with_bias = false});
  const op_desc product = net.main.main().ops.back();
  op_desc gradients;
  gradients.type = "mul_grad";
  gradients.attributes = product.attributes;
  gradients.attributes.set("op_role", int{role_backward});
  gradients.set_input("X", product.input("X"));
  gradients.set_input("Y", product.input("Y"));
  gradients.set_input("Out@GRAD", {gradient_name(out.name())});
  gradients.set_output("X@GRAD", {"x@GRAD"});
  gradients.set_output("Y@GRAD", {gradient_name(product.only_input("Y"))});
  net.main.main().ops.push_back(gradients);
  CHECK(of_type(net.main, count_cost(net.main, 5), "mul_grad").flops
        == 2 * (2 * 5 * 7 * 3));
}

TEST_CASE("a convolution costs its filter per output element") {
  network net;
  auto x = net.data("x", {-1, 8, 10, 12});
  layers::conv2d(
    x,
    {.filters = 6, .kernel = {3, 5}, .stride = 2, .padding = 1, .groups = 2});
  // Outputs are 5 x 5, filters (8 / 2) x 3 x 5.
  CHECK(count_cost(net.main, 3).total().flops
        == 2.0 * (3 * 6 * 5 * 5) * (4 * 3 * 5));
}

TEST_CASE("a batched product costs its inner extent per output element") {
  network net;
  auto x = net.data("x", {-1, 4, 6, 9});
  auto y = net.data("y", {-1, 4, 6, 5});
  layers::matmul(x, y, {.transpose_x = true});
  CHECK(count_cost(net.main, 3).total().flops == 2.0 * (3 * 4 * 9 * 5) * 6);
}

TEST_CASE("shapes behind the feeds follow from the batch") {
  network net;
  auto x = net.data("x", {-1, 4, 6});
  layers::fc(layers::flatten(x, {.start_axis = 0, .stop_axis = 1}), 3);
  CHECK(count_cost(net.main, 5).total().flops == 2 * (5 * 4) * 6 * 3);
}

TEST_CASE("a product moves its operands and its result") {
  network net;
  layers::matmul(net.data("x", {-1, 7}), net.data("y", {7, 3}));
  CHECK(count_cost(net.main, 5).total().bytes
        == float_bytes * (5 * 7 + 7 * 3 + 5 * 3));
}

TEST_CASE("what goes straight through an elementwise op stays in registers") {
  network net;
  auto x = net.data("x", {-1, 7});
  layers::softmax(layers::relu(layers::scale(x, {.scale = 2})));
  const auto cost = count_cost(net.main, 5);
  // x and the result of the softmax.
  CHECK(cost.total().bytes == float_bytes * 2 * (5 * 7));
}

TEST_CASE("a value with two readers is written once and read twice") {
  network net;
  auto x = net.data("x", {-1, 7});
  auto h = layers::relu(x);
  layers::softmax(h);
  layers::softmax(h);
  CHECK(of_type(net.main, count_cost(net.main, 5), "softmax").bytes
        == float_bytes * 4 * (5 * 7));
  CHECK(of_type(net.main, count_cost(net.main, 5), "relu").bytes
        == float_bytes * 2 * (5 * 7));
}

TEST_CASE("another view of a value moves nothing") {
  network net;
  auto x = net.data("x", {-1, 8});
  layers::softmax(layers::reshape(x, {0, 2, 4}));
  CHECK(count_cost(net.main, 5).total().bytes == float_bytes * 2 * (5 * 8));
}

TEST_CASE("a sparse table moves the rows that are looked up") {
  network net;
  auto ids = net.data("ids", {-1, 3}, dtype::int64);
  auto e =
    layers::embedding(ids, {.rows = 100'000, .width = 8, .is_sparse = true});
  train(layers::mean(e));
  const auto cost = count_cost(net.main, 5);
  constexpr double rows = 5 * 3 * 8 * float_bytes, ids_bytes = 5 * 3 * 8;
  CHECK(of_type(net.main, cost, "lookup_table_v2").bytes
        == 2 * rows + ids_bytes);
  // The rows of the table, read and written; their gradient goes from op to op.
  CHECK(of_type(net.main, cost, "sgd").bytes == 2 * rows + float_bytes);
}

TEST_CASE("an op takes the longer of computing and moving") {
  const roofline machine{.flops_per_s = 100, .bytes_per_s = 10};
  CHECK(machine.seconds(graph::work{.flops = 200, .bytes = 10}) == 2);
  CHECK(machine.seconds(graph::work{.flops = 200, .bytes = 50}) == 5);
  const program_cost step{{{200, 10}, {200, 50}}};
  CHECK(machine.seconds(step) == 7);
  CHECK(step.total().flops == 400);
  CHECK(step.total().bytes == 60);
}

TEST_CASE("nets cost what their papers say") {
  // Multiplications of a forward pass: 4.1e9 (ResNet-50), 0.56e9 (ResNet-18 for
  // CIFAR); the backward pass has twice as many, but for the image's gradient.
  auto gflops = [](const char* name, std::int64_t batch) {
    return count_cost(build_model(name).main, batch).total().flops / 1e9;
  };
  CHECK(gflops("resnet50", 1) == doctest::Approx(2 * 3 * 4.09).epsilon(0.02));
  CHECK(gflops("resnet18", 1) == doctest::Approx(2 * 3 * 0.556).epsilon(0.02));
}

} // TEST_SUITE("graph.program_cost")
