// SPDX-License-Identifier: Apache-2.0
#include <kernels/cpu/hand_run.hpp>
#include <kernels/cpu/shared_run.hpp>

#include <troupe/base/error.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.gathered_product") {

namespace {

/// The merged gradient of Y [in, out] from devices with so many samples.
op_case gathered(const sizes& samples, std::int64_t in, std::int64_t out) {
  op_case c{.type = "gathered_mul_grad",
            .inputs = {{"Y", {random_values({in, out}, 1)}}},
            .outputs = {{"Y@GRAD", 1}}};
  std::uint64_t seed = 2;
  for (auto n : samples) {
    c.inputs["X"].push_back(random_values({n, in}, seed++));
    c.inputs["Out@GRAD"].push_back(random_values({n, out}, seed++));
  }
  return c;
}

/// What one device makes of its samples alone.
op_case alone(const op_case& all, std::size_t device) {
  return {.type = "mul_grad",
          .inputs = {{"X", {all.inputs.at("X")[device]}},
                     {"Y", all.inputs.at("Y")},
                     {"Out@GRAD", {all.inputs.at("Out@GRAD")[device]}}},
          .outputs = {{"Y@GRAD", 1}}};
}

/// The devices' own gradients, added up in their order.
op_values merged(const kernel_table& table, const op_case& all) {
  auto sum = run_op(table, alone(all, 0));
  auto& elements = sum.at("Y@GRAD")[0].elements;
  for (std::size_t device = 1; device < all.inputs.at("X").size(); ++device) {
    const auto next = run_op(table, alone(all, device));
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] += next.at("Y@GRAD")[0].elements[i];
  }
  return sum;
}

/// Whole and shared by workers, the latter with the same bits each time.
void gives_the_merged_gradient(const kernel_table& table, const op_case& c) {
  CAPTURE(describe(c));
  const auto expected = merged(table, c);
  CHECK(difference(run_op(table, c), expected, near) == "");
  shared_run shared(table, c);
  const auto parts = shared.run(c);
  CHECK(difference(parts, expected, near) == "");
  CHECK(difference(shared.run(c), parts, same_bits) == "");
}

} // namespace

TEST_CASE("factors of several devices give what merged gradients are") {
  for (const auto& samples :
       {sizes{4}, sizes{7, 6}, sizes{32, 32}, sizes{1, 2, 1}})
    gives_the_merged_gradient(plain(), gathered(samples, 170, 150));
  gives_the_merged_gradient(plain(), gathered({9, 8}, 784, 512));
  gives_the_merged_gradient(plain(), gathered({16, 16}, 3, 4000));
}

TEST_CASE("many samples give them, too") {
  gives_the_merged_gradient(plain(), gathered({500, 129, 700}, 170, 150));
}

TEST_CASE("large products are shared by workers") {
  const auto c = gathered({32, 32}, 784, 512);
  shared_run shared(plain(), c);
  shared.run(c);
  CHECK(shared.most_parts() >= sharing_workers);
}

TEST_CASE("float64 gives the merged gradient") {
  const auto c = with_float_type(gathered({20, 300}, 40, 30), dtype::float64);
  const auto first = run_op(plain(), alone(c, 0)).at("Y@GRAD")[0];
  const auto second = run_op(plain(), alone(c, 1)).at("Y@GRAD")[0];
  const auto sum = run_op(plain(), c).at("Y@GRAD")[0];
  REQUIRE(sum.type == dtype::float64);
  for (std::size_t i = 0; i < sum.elements.size(); ++i)
    CHECK(sum.elements[i]
          == doctest::Approx(first.elements[i] + second.elements[i])
               .epsilon(1e-13));
}

TEST_CASE("factors in bfloat16 give what merged gradients are") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const auto rounding = cpu_kernels({.factors = precision::bfloat16});
  gives_the_merged_gradient(rounding, gathered({32, 31}, 400, 300));
  gives_the_merged_gradient(rounding, gathered({200, 160}, 400, 300));
}

TEST_CASE("a device without samples adds nothing") {
  for (std::size_t idle : {0, 1, 2}) {
    CAPTURE(idle);
    hand_run op("gathered_mul_grad");
    hand_run rest("gathered_mul_grad");
    variable absent;
    for (std::size_t device = 0; device < 3; ++device) {
      const auto value = static_cast<float>(device + 1);
      if (device == idle) {
        op.input("X", absent);
        continue;
      }
      for (auto* to : {&op, &rest})
        to->input("X", {1, 2}, {value, 2 * value});
    }
    for (auto* to : {&op, &rest})
      to->input("Y", {2, 2}, {0, 0, 0, 0});
    for (std::size_t device = 0; device < 3; ++device)
      if (device == idle)
        op.input("Out@GRAD", absent);
      else
        for (auto* to : {&op, &rest})
          to->input("Out@GRAD", {1, 2}, {1, 10});
    auto& sum = op.output("Y@GRAD");
    auto& expected = rest.output("Y@GRAD");
    op.run();
    rest.run();
    CHECK(elements(sum) == elements(expected));
    const auto others = 6.0f - static_cast<float>(idle + 1);
    CHECK(elements(sum)
          == std::vector{others, 10 * others, 2 * others, 20 * others});
  }
}

TEST_CASE("devices that all update share the gradient and do not write it") {
  hand_run op("gathered_mul_grad");
  op.input("X", {1, 2}, {1, 2});
  op.input("Y", {2, 1}, {0, 0});
  op.input("Out@GRAD", {1, 1}, {3});
  auto& first = op.output("Y@GRAD");
  auto& second = op.output("Y@GRAD");
  for (int step = 0; step < 2; ++step) {
    op.run();
    CHECK(elements(first) == std::vector{3.0f, 6.0f});
    CHECK(memory_of(first) == memory_of(second));
    CHECK(first.as_tensor().is_shared());
    CHECK(second.as_tensor().is_shared());
  }
}

TEST_CASE("factors that do not fit are refused") {
  auto rows = gathered({4, 4}, 8, 6);
  rows.inputs["Out@GRAD"][1] = random_values({3, 6}, 9);
  CHECK_THROWS_WITH_AS(run_op(plain(), rows), doctest::Contains("Out@GRAD"),
                       error);
  auto columns = gathered({4, 4}, 8, 6);
  columns.inputs["X"][1] = random_values({4, 7}, 9);
  CHECK_THROWS_WITH_AS(run_op(plain(), columns),
                       doctest::Contains("columns of X"), error);
  auto types = gathered({4, 4}, 8, 6);
  types.inputs["X"][1].type = dtype::float64;
  CHECK_THROWS_AS(run_op(plain(), types), error);
}

} // TEST_SUITE("kernels.cpu.gathered_product")

} // namespace troupe::test
