// SPDX-License-Identifier: Apache-2.0
// An application with an op of its own: exp(-x^2) of each element. Its gradient
// is checked before a network is trained with it, on two devices.
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/own_ops/gradient_check.hpp>
#include <troupe/graph/own_ops/own_op.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>

namespace {

using namespace troupe;

// The op: kernel, gradient, shapes.

void gaussian(kernel_context& ctx) {
  const auto x = ctx.input("X");
  auto out = ctx.output("Out", x.dims(), x.type());
  std::ranges::transform(x.values<float>(), out.values<float>().begin(),
                         [](float v) { return std::exp(-v * v); });
}

void gaussian_grad(kernel_context& ctx) {
  const auto x = ctx.input("X"), out = ctx.input("Out"),
             above = ctx.input("Out@GRAD");
  auto down = ctx.output("X@GRAD", x.dims(), x.type());
  for (std::int64_t i = 0; i < x.numel(); ++i)
    down.data<float>()[i] =
      -2 * x.data<float>()[i] * out.data<float>()[i] * above.data<float>()[i];
}

const graph::own_op gaussian_op{.schema = {.type = "gaussian",
                                           .inputs = {{"X"}},
                                           .outputs = {{"Out"}},
                                           .infer =
                                             [](graph::shape_inference& s) {
                                               s.output("Out", s.dims("X"),
                                                        s.type("X"));
                                             },
                                           .gradient = {.groups = {{"X"}},
                                                        .reads = {"X", "Out"},
                                                        .outputs = {"Out"}}},
                                .run = gaussian,
                                .gradient = gaussian_grad};

/// Values from -2 to 2, as [batch, 1].
tensor line(arena& memory) {
  auto x = tensor::make(memory, {64, 1}, dtype::float32);
  for (std::int64_t i = 0; i < 64; ++i)
    x.data<float>()[i] = -2 + static_cast<float>(i) / 16;
  return x;
}

void run() {
  auto schemas = graph::op_schemas();
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  graph::add_op(schemas, *kernels, gaussian_op);

  arena memory{make_host_memory_source()};
  const auto x = line(memory);
  if (const auto wrong =
        graph::find_wrong_gradient(schemas, *kernels,
                                   {.type = "gaussian",
                                    .inputs = {{"X", {x}}},
                                    .precision = dtype::float32}))
    throw std::runtime_error(to_string(*wrong));

  graph::network net{schemas};
  const auto hidden = layers::fc(net.data("x", {-1, 1}), 16);
  const auto bells = layers::op("gaussian", {{"X", {hidden}}}).at("Out");
  const auto far = layers::sub(layers::fc(bells, 1), net.data("y", {-1, 1}));
  const auto cost = layers::mean(layers::square(far));
  optimizer::adam({.learning_rate = 0.05f}).minimize(cost);

  auto y = clone(x, memory);
  std::ranges::transform(x.values<float>(), y.values<float>().begin(),
                         [](float v) { return std::sin(3 * v); });
  auto parameters = std::make_shared<scope>();
  run_startup(net.startup, *parameters);
  executor exe{net.main,
               {.devices = parse_devices("cpu:2"),
                .parameters = parameters,
                .kernels = kernels}};
  for (int step = 0; step <= 400; ++step)
    if (const auto loss = exe.run({{"x", x}, {"y", y}}).loss; step % 100 == 0)
      std::printf("step %d loss %.4f\n", step, loss);
}

} // namespace

int main() try { run(); } catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
