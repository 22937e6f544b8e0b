// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>

#include <actors/application.hpp>
#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.two_executors") {

namespace {

constexpr std::uint64_t steps = 30;

/// An executor with parameters of its own.
struct own_run {
  std::shared_ptr<scope> parameters;
  std::unique_ptr<executor> exe;
  std::vector<std::future<step_result>> results;

  own_run(const small_net& net,
          const std::shared_ptr<const graph::program>& program,
          std::uint64_t seed, int devices, caf::actor_system& system)
    : parameters(net.parameters(seed)) {
    executor_options options;
    options.devices = parse_devices("cpu:" + std::to_string(devices));
    options.parameters = parameters;
    options.seed = seed;
    options.system = &system;
    exe = std::make_unique<executor>(program, options);
  }
  std::vector<double> losses() {
    std::vector<double> seen;
    for (auto& r : results)
      seen.push_back(r.get().loss);
    return seen;
  }
};

} // namespace

TEST_CASE(
  "executors of one program and one actor system do not see each other") {
  // Dropout has random numbers, which must not be shared either.
  const auto net = make_dropout_net();
  const auto program = std::make_shared<const graph::program>(net.main);
  application app;
  const auto start = [&](std::uint64_t seed, int devices) {
    return own_run{net, program, seed, devices, app.system};
  };
  const auto step = [&](own_run& run, std::uint64_t i) {
    run.results.push_back(run.exe->run_async(net.batch(i, 8)));
  };
  const auto alone = [&](std::uint64_t seed, int devices) {
    auto run = start(seed, devices);
    for (std::uint64_t i = 0; i < steps; ++i)
      step(run, i);
    auto losses = run.losses();
    return std::pair{losses, values_of(*run.parameters)};
  };
  const auto first_alone = alone(1, 2), second_alone = alone(2, 1);
  CHECK(first_alone.first != second_alone.first);

  auto first = start(1, 2), second = start(2, 1);
  for (std::uint64_t i = 0; i < steps; ++i) {
    step(first, i);
    step(second, i);
    if (i == steps / 2) // one that fails and ends is not seen either
      CHECK_THROWS_AS(start(3, 1).exe->run({}), error);
  }
  CHECK(first.losses() == first_alone.first);
  CHECK(second.losses() == second_alone.first);
  CHECK(values_of(*first.parameters) == first_alone.second);
  CHECK(values_of(*second.parameters) == second_alone.second);
}

} // TEST_SUITE("actors.two_executors")
