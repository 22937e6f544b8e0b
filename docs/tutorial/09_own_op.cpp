// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/own_ops/gradient_check.hpp>
#include <troupe/graph/own_ops/own_op.hpp>

#include <cstdio>
#include <exception>

using namespace troupe;

// Out = X * X * X
void cube(kernel_context& ctx) {
  const auto x = ctx.input("X");
  auto out = ctx.output("Out", x.dims(), x.type());
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto v = x.data<float>()[i];
    out.data<float>()[i] = v * v * v;
  }
}

// X@GRAD = 3 * X * X * Out@GRAD
void cube_grad(kernel_context& ctx) {
  const auto x = ctx.input("X"), above = ctx.input("Out@GRAD");
  auto down = ctx.output("X@GRAD", x.dims(), x.type());
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto v = x.data<float>()[i];
    down.data<float>()[i] = 3 * v * v * above.data<float>()[i];
  }
}

void same_shape(graph::shape_inference& shapes) {
  shapes.output("Out", shapes.dims("X"), shapes.type("X"));
}

graph::own_op cube_op() {
  graph::own_op op;
  op.schema.type = "cube";
  op.schema.inputs = {{"X"}};
  op.schema.outputs = {{"Out"}};
  op.schema.infer = same_shape;
  op.schema.gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}};
  op.run = cube;
  op.gradient = cube_grad;
  return op;
}

tensor line(arena& memory) {
  auto x = tensor::make(memory, {16, 1}, dtype::float32);
  for (int i = 0; i < 16; ++i)
    x.data<float>()[i] = static_cast<float>(i) / 8 - 1;
  return x;
}

int main() try {
  auto schemas = graph::op_schemas();
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  graph::add_op(schemas, *kernels, cube_op());

  arena memory(make_host_memory_source());
  const auto x = line(memory);
  const auto wrong = graph::find_wrong_gradient(
    schemas, *kernels,
    {.type = "cube", .inputs = {{"X", {x}}}, .precision = dtype::float32});
  std::printf("%s\n",
              wrong ? to_string(*wrong).c_str() : "the gradient is right");

  graph::network net(schemas);
  auto hidden = layers::fc(net.data("x", {-1, 1}), 4);
  auto cubes = layers::op("cube", {{"X", {hidden}}}).at("Out");
  auto far = layers::sub(layers::fc(cubes, 1), net.data("y", {-1, 1}));
  optimizer::adam({.learning_rate = 0.02f})
    .minimize(layers::mean(layers::square(far)));

  auto parameters = std::make_shared<scope>();
  run_startup(net.startup, *parameters);
  executor exe(net.main, {.parameters = parameters, .kernels = kernels});
  for (int step = 1; step <= 300; ++step)
    if (const auto loss = exe.run({{"x", x}, {"y", x}}).loss; step % 100 == 1)
      std::printf("step %d loss %.2f\n", step, loss);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
