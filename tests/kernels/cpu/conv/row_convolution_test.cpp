// SPDX-License-Identifier: Apache-2.0
// Filters that slide along rows of plain images against the reference.
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.cpu.row_convolution") {

namespace {

constexpr double near = 1e-5;

/// The op and its gradient, twice with the same kernel: what the first run left
/// must not show.
void check(const shape& images, const shape& filters) {
  const op_case c{.type = "conv2d",
                  .inputs = {{"Input", {random_values(images, 1)}},
                             {"Filter", {random_values(filters, 2)}}},
                  .outputs = {{"Output", 1}},
                  .gradient = gradient_slots{
                    {"Output"}, {"Input", "Filter"}, {"Input", "Filter"}}};
  CAPTURE(describe(c));
  const auto expected = run_op(reference_kernels(), c);
  const auto back = backward_of(c, expected);
  for (const auto& each : {c, back}) {
    const auto wanted = run_op(reference_kernels(), each);
    op_runner own(cpu_kernels(), each);
    for (int again = 0; again < 2; ++again)
      CHECK(difference(own.run(each), wanted, near) == "");
  }
}

} // namespace

TEST_CASE("rows of one vector and of several") {
  check({2, 3, 12, 12}, {5, 3, 5, 5});
  check({2, 3, 10, 20}, {5, 3, 5, 5});
  check({2, 3, 7, 26}, {5, 3, 2, 3});
}

TEST_CASE("vectors of pixels that do not fill tiles") {
  check({2, 2, 5, 10}, {5, 2, 3, 3}); // 3
  check({2, 2, 7, 10}, {5, 2, 3, 3}); // 5
  check({2, 2, 5, 18}, {5, 2, 3, 3}); // 6
  check({2, 2, 3, 10}, {5, 2, 3, 3}); // 1
}

TEST_CASE("filters and taps that do not fill tiles") {
  for (const std::int64_t filters : {1, 2, 4, 6, 7, 9})
    check({2, 2, 6, 10}, {filters, 2, 3, 3});
  for (const std::int64_t channels : {1, 2, 3, 4, 5})
    check({2, channels, 6, 9}, {5, channels, 1, 2});
}

TEST_CASE("more samples than stay in the cache together") {
  check({37, 2, 6, 10}, {7, 2, 3, 3});
}

} // TEST_SUITE("kernels.cpu.row_convolution")
