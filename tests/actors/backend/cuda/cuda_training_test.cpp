// SPDX-License-Identifier: Apache-2.0
#include <actors/backend/cuda/cuda_options.hpp>
#include <actors/small_nets.hpp>
#include <kernels/cuda/cuda_rig.hpp>
#include <support/long_run.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/actors/steps/executor_graph.hpp>
#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using graph::merge_strategy;
using test::mishap;

TEST_SUITE("actors.backend.cuda_training") {

namespace {

const std::vector<std::int64_t> batches{13, 13, 1, 13};

executor_options on_cpu(int devices, merge_strategy strategy) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  return o;
}

/// True if each number is that of the other list, up to rounding.
bool alike(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size())
    return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-5 * std::abs(b[i])))
      return false;
  return true;
}

} // namespace

TEST_CASE("mlp trains on CUDA devices with the CPU's losses") {
  const auto net = test::make_mlp();
  for (int devices : {1, 2, 3, 8})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::replicate}) {
      CAPTURE(devices);
      CAPTURE(to_string(strategy));
      const auto cpu = test::train(net, on_cpu(devices, strategy), batches);
      const auto cuda = test::train(
        net, test::on_cuda(test::make_test_driver(), devices, strategy),
        batches);
      CHECK(alike(cuda.losses, cpu.losses));
    }
}

TEST_CASE("devices that merge by NCCL train with the CPU's losses") {
  if (test::tests_use_gpu())
    return; // how many GPUs there are is not known
  const auto net = test::make_mlp();
  for (int devices : {2, 3, 5, 8})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::replicate}) {
      CAPTURE(devices);
      CAPTURE(to_string(strategy));
      const auto cpu = test::train(net, on_cpu(devices, strategy), batches);
      const auto api = test::make_pretend_driver({.gpus = devices});
      const auto cuda =
        test::train(net, test::on_cuda(api, devices, strategy), batches);
      CHECK(alike(cuda.losses, cpu.losses));
      CHECK(api->merges() >= 3); // with one sample, others are idle
    }
}

TEST_CASE("other nets train on CUDA devices with the CPU's losses") {
  for (const auto& net :
       {test::make_lenet(), test::make_resnet(false), test::make_resnet(true)})
    for (int devices : {1, 2}) {
      CAPTURE(net.name);
      CAPTURE(devices);
      const auto cpu =
        test::train(net, on_cpu(devices, merge_strategy::all_reduce), batches);
      const auto cuda = test::train(
        net, test::on_cuda(test::make_test_driver(), devices), batches);
      CHECK(alike(cuda.losses, cpu.losses));
    }
}

TEST_CASE("training on CUDA devices is bit-equal whatever runs first") {
  if (test::tests_use_gpu())
    return; // the pretend driver's seeds decide what runs first
  const auto net = test::make_mlp();
  const std::uint64_t seeds = test::is_long_run() ? 1000 : 12;
  struct machine {
    int devices, gpus;
    bool has_nccl;
  };
  for (const auto& m :
       {machine{1, 2, true}, machine{2, 2, false}, machine{8, 2, true},
        machine{2, 2, true}, machine{8, 8, true}}) {
    CAPTURE(m.devices);
    CAPTURE(m.gpus);
    CAPTURE(m.has_nccl);
    const auto train = [&](std::uint64_t seed, wait_mode waits_by) {
      const auto api = test::make_pretend_driver(
        {.gpus = m.gpus, .seed = seed, .has_nccl = m.has_nccl});
      return test::train(
        net,
        test::on_cuda(api, m.devices, merge_strategy::all_reduce, {waits_by}),
        batches);
    };
    const auto first = train(1, wait_mode::event);
    for (std::uint64_t seed = 2; seed <= seeds; ++seed) {
      CAPTURE(seed);
      const auto again =
        train(seed, seed % 4 == 0 ? wait_mode::block : wait_mode::event);
      CHECK(again.losses == first.losses);
      CHECK(test::bit_equal(*again.parameters, *first.parameters));
    }
  }
}

TEST_CASE("weight gradients on a stream of their own have the same bits") {
  const auto net = test::make_mlp();
  for (int devices : {1, 2}) {
    CAPTURE(devices);
    auto on_one = test::on_cuda(test::make_test_driver(), devices);
    on_one.lowering.gradient_stream = false;
    auto on_two = test::on_cuda(test::make_test_driver(), devices);
    const auto moved = [&](const executor_options& options) {
      const auto g = actors::build_graph(
        std::make_shared<const graph::program>(net.main), options, net.loss);
      return std::ranges::count(g.ops, graph::stream_kind::gradient,
                                &graph::op_handle::stream);
    };
    CHECK(moved(on_one) == 0);
    CHECK(moved(on_two) >= 2 * devices);
    const auto one = test::train(net, on_one, batches);
    const auto two = test::train(net, on_two, batches);
    CHECK(two.losses == one.losses);
    CHECK(test::bit_equal(*two.parameters, *one.parameters));
  }
}

// The second of four steps leaves it out, so that a value that is overwritten
// too early is one that others read. Which waits a step needs depends on what
// the seed lets run first, so the k-th wait is left out with each seed. Only
// waits that order something count: a stream can wait twice for one event
// before the same work, for a value and for memory, and needs one of the two.
TEST_CASE("a wait for an event that is left out is found within 100 seeds") {
  if (test::tests_use_gpu())
    return; // a GPU's driver forgets no wait
  const auto net = test::make_mlp();
  bool has_nccl = true;
  const auto losses_and_waits = [&](std::uint64_t seed,
                                    std::uint64_t left_out) {
    const auto api =
      test::make_pretend_driver({.seed = seed, .has_nccl = has_nccl});
    auto options = test::on_cuda(api, 2);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    std::vector<double> losses{exe.run(net.batch(0, 13)).loss};
    api->set(mishap::wait_forgotten, left_out);
    losses.push_back(exe.run(net.batch(1, 13)).loss);
    const auto waits = api->calls();
    for (std::uint64_t step : {2, 3})
      losses.push_back(exe.run(net.batch(step, 13)).loss);
    return std::pair{losses, waits};
  };
  for (bool with : {false, true}) {
    has_nccl = with;
    CAPTURE(has_nccl);
    constexpr auto none = ~std::uint64_t{0};
    const auto wanted = losses_and_waits(1, none).first;
    std::vector<std::uint64_t> waits;
    for (std::uint64_t seed = 1; seed <= 21; ++seed)
      waits.push_back(losses_and_waits(seed, none).second);
    std::ranges::sort(waits);
    CHECK(waits[10] > 8);
    for (std::uint64_t wait = 0; wait < waits[10]; ++wait) {
      CAPTURE(wait);
      const auto is_right = [&](std::uint64_t seed) {
        try {
          return losses_and_waits(seed, wait).first == wanted;
        } catch (const error&) {
          return false; // a label that has not arrived is no class
        }
      };
      std::uint64_t seed = 1;
      while (seed <= 100 && is_right(seed))
        ++seed;
      CHECK(seed <= 100);
    }
  }
}

TEST_CASE("what is fetched on CUDA devices is not overwritten before") {
  const auto net = test::make_mlp();
  std::vector<std::string> names;
  for (auto& op : net.main.main().ops)
    if (op.type == "relu" || op.type == "elementwise_add")
      names.push_back(op.output("Out").front());
  REQUIRE(names.size() > 1);
  std::vector<std::vector<float>> wanted;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    auto options = test::on_cuda(test::make_test_driver(seed), 1);
    options.parameters = net.parameters();
    options.fetches = names;
    executor exe{net.main, options};
    std::vector<std::vector<float>> found;
    for (std::uint64_t step = 0; step < 3; ++step) {
      const auto result = exe.run(net.batch(step, 13), names);
      for (auto& name : names) {
        const auto values = result.fetched.at(name)[0].values<float>();
        found.emplace_back(values.begin(), values.end());
      }
    }
    if (wanted.empty())
      wanted = found;
    CHECK(found == wanted);
  }
}

} // TEST_SUITE("actors.backend.cuda_training")

} // namespace troupe
