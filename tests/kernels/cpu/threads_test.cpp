// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.cpu.threads") {

namespace {

op_case product() {
  return {.type = "mul",
          .inputs = {{"X", {random_values({33, 130}, 1)}},
                     {"Y", {random_values({130, 65}, 2)}}}};
}

op_case convolution(std::int64_t samples) {
  return {.type = "conv2d",
          .inputs = {{"Input", {random_values({samples, 16, 12, 12}, 3)}},
                     {"Filter", {random_values({32, 16, 3, 3}, 4)}}},
          .outputs = {{"Output", 1}}};
}

op_case normalization() {
  return {.type = "softmax", .inputs = {{"X", {random_values({64, 100}, 5)}}}};
}

} // namespace

TEST_CASE("kernels of one type on four threads give one thread's bits") {
  const auto table = cpu_kernels();
  const std::vector<op_case> all{product(), convolution(3), normalization()};
  std::vector<op_values> expected;
  for (const auto& c : all)
    expected.push_back(run_op(table, c));
  std::vector<std::string> failures(4);
  std::vector<std::thread> threads;
  for (auto& failure : failures)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round)
        for (std::size_t i = 0; i < all.size(); ++i)
          failure += difference(run_op(table, all[i]), expected[i], 0);
    });
  for (auto& thread : threads)
    thread.join();
  for (const auto& failure : failures)
    CHECK(failure == "");
}

TEST_CASE("a kernel made on one thread runs on others, shape after shape") {
  const auto table = cpu_kernels();
  op_runner runner(table, convolution(1));
  runner.run(convolution(1));
  std::string failure;
  for (const std::int64_t samples : {1, 5, 2})
    std::thread([&] {
      const auto c = convolution(samples);
      failure += difference(runner.run(c), run_op(table, c), 0);
    }).join();
  CHECK(failure == "");
}
} // TEST_SUITE("kernels.cpu.threads")
