// SPDX-License-Identifier: Apache-2.0
#include <actors/backend/cuda/cuda_options.hpp>
#include <actors/small_nets.hpp>
#include <kernels/cuda/cuda_rig.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/base/error.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

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
  for (int devices : {1, 2, 3})
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
  for (int devices : {1, 2}) {
    const auto first = test::train(
      net, test::on_cuda(test::make_pretend_driver(), devices), batches);
    for (std::uint64_t seed = 2; seed <= 12; ++seed) {
      CAPTURE(seed);
      const auto waits_by =
        seed % 4 == 0 ? cuda::wait_mode::block : cuda::wait_mode::event;
      const auto again = test::train(
        net,
        test::on_cuda(test::make_pretend_driver({.seed = seed}), devices,
                      merge_strategy::all_reduce, {waits_by}),
        batches);
      CHECK(again.losses == first.losses);
      CHECK(test::bit_equal(*again.parameters, *first.parameters));
    }
  }
}

// A wait may be one that others imply, or that the host makes superfluous
// because it is slow, so not each of them is missed.
TEST_CASE("a wait for an event that is left out is found within 100 seeds") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return test::skip_case("the host is so slow that hardly a wait is needed");
#endif
  const auto net = test::make_mlp();
  const auto wanted =
    test::train(net, test::on_cuda(test::make_pretend_driver(), 2), batches);
  const auto is_right = [&](std::uint64_t seed, std::uint64_t wait) {
    auto options = test::on_cuda(
      test::make_pretend_driver(
        {.seed = seed, .goes_wrong = mishap::wait_forgotten, .at_call = wait}),
      2);
    try {
      const auto trained = test::train(net, std::move(options), batches);
      return trained.losses == wanted.losses
             && test::bit_equal(*trained.parameters, *wanted.parameters);
    } catch (const error&) {
      return false; // a label that has not arrived is no class
    }
  };
  const auto is_missed = [&](std::uint64_t wait) {
    std::uint64_t seed = 1;
    while (seed <= 100 && is_right(seed, wait))
      ++seed;
    return seed <= 100;
  };
  bool is_found = false;
  for (std::uint64_t wait = 2; wait < 8 && !is_found; ++wait)
    is_found = is_missed(wait);
  CHECK(is_found);
}

} // TEST_SUITE("actors.backend.cuda_training")

} // namespace troupe
