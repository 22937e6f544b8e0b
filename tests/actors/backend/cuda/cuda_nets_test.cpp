// SPDX-License-Identifier: Apache-2.0
#include <actors/backend/cuda/cuda_feeds.hpp>
#include <actors/backend/cuda/cuda_options.hpp>
#include <kernels/cuda/cuda_rig.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/kernels/cuda/cuda_kernels.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using test::feeds_of;
using test::make_test_driver;
using test::on_cuda;

TEST_SUITE("actors.backend.cuda_nets") {

namespace {

/// The losses of two steps of the same batch. The learning rate is so small
/// that the second loss depends on the first step's gradients smoothly: a step
/// of Adam has the length of the rate whatever the gradient's size, so at a
/// usual rate rounding of small gradients would show.
std::vector<double> losses(const graph::model& net, executor_options options) {
  options.parameters = std::make_shared<scope>();
  run_startup(net.startup, *options.parameters, 3);
  executor exe{net.main, std::move(options)};
  auto feeds = feeds_of(net, 1);
  arena memory{make_host_memory_source()};
  auto rate = tensor::make(memory, {1}, dtype::float32);
  rate.data<float>()[0] = 1e-4f;
  feeds.emplace("learning_rate_0", rate);
  const auto first = exe.run(feeds).loss;
  return {first, exe.run(feeds).loss};
}

} // namespace

TEST_CASE("every built-in net has kernels on CUDA devices") {
  const auto kernels = cuda::cuda_kernels();
  for (auto& [name, build] : graph::models()) {
    CAPTURE(name);
    const auto net = build({});
    for (auto* program : {&net.main, &net.test}) {
      for (auto& op : program->main().ops) {
        CAPTURE(op.type);
        CHECK_NOTHROW(kernels.make(op.type, device_kind::cuda, op.attributes));
      }
    }
  }
}

// widedeep's table is too large for the pretend driver.
TEST_CASE("built-in nets train on CUDA devices with the CPU's losses") {
  for (std::string name : {"digits", "gpt", "lenet", "resnet8", "word2vec"}) {
    CAPTURE(name);
    const auto net = graph::build_model(name);
    executor_options on_cpu;
    on_cpu.devices = parse_devices("cpu:1");
    const auto wanted = losses(net, on_cpu);
    const auto found = losses(net, on_cuda(make_test_driver(), 1));
    CHECK(std::abs(found[0] - wanted[0]) <= 1e-5 * std::abs(wanted[0]));
    // The update has changed the loss by the same, to 1 %.
    CHECK(std::abs(found[1] - wanted[1])
          <= 1e-2 * std::abs(wanted[1] - wanted[0]));
  }
}

} // TEST_SUITE("actors.backend.cuda_nets")

} // namespace troupe
