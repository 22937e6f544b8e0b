// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/own_ops/gradient_check.hpp>

#include <support/caught.hpp>
#include <support/gaussian_op.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::test;

TEST_SUITE("graph.gradient_check") {

namespace {

struct tables {
  op_schema_table schemas = op_schemas();
  kernel_table kernels = cpu_kernels();
  arena memory{make_host_memory_source()};

  /// float32 numbers from -1 on, evenly spaced.
  tensor numbers(const shape& dims) {
    auto value = tensor::make(memory, dims, dtype::float32);
    for (std::int64_t i = 0; i < value.numel(); ++i)
      value.data<float>()[i] =
        -1 + 2 * static_cast<float>(i) / static_cast<float>(value.numel());
    return value;
  }
  std::optional<wrong_gradient> wrong(const gradient_case& what) const {
    return find_wrong_gradient(schemas, kernels, what);
  }
  /// Adds `gaussian` with this gradient.
  void with_gradient(kernel_function gradient) {
    auto op = gaussian_op();
    op.gradient = gradient;
    add_op(schemas, kernels, op);
  }
  gradient_case gaussian_case() {
    return {.type = "gaussian", .inputs = {{"X", {numbers({2, 3})}}}};
  }
};

/// Right but for the last element.
void wrong_at_the_end(kernel_context& ctx) {
  gaussian_grad<>(ctx);
  auto down = ctx.output_variable("X@GRAD").as_tensor();
  auto& last = down.values<double>().back();
  last = last + 1;
}

void not_a_number(kernel_context& ctx) {
  gaussian_grad<>(ctx);
  auto down = ctx.output_variable("X@GRAD").as_tensor();
  down.values<double>().front() = std::numeric_limits<double>::quiet_NaN();
}

void of_another_shape(kernel_context& ctx) {
  ctx.output("X@GRAD", {1}, dtype::float64).values<double>()[0] = 0;
}

} // namespace

TEST_CASE_FIXTURE(tables, "a right gradient is found right, in both formats") {
  with_gradient(gaussian_grad<>);
  auto what = gaussian_case();
  CHECK_FALSE(wrong(what));
  what.precision = dtype::float32;
  CHECK_FALSE(wrong(what));
}

TEST_CASE_FIXTURE(tables, "a wrong gradient is named: op, input and element") {
  with_gradient(wrong_at_the_end);
  const auto found = wrong(gaussian_case());
  REQUIRE(found);
  CHECK(found->op == "gaussian_grad");
  CHECK(found->input == "X");
  CHECK(found->variable == 0);
  CHECK(found->element == shape{1, 2});
  CHECK(found->computed == doctest::Approx(found->expected + 1));
  CHECK(to_string(*found).starts_with(
    "gaussian_grad: the gradient of X at [1, 2] is "));
}

TEST_CASE_FIXTURE(tables, "a factor of 1.01 and a NaN are found") {
  with_gradient(gaussian_grad<101>);
  auto what = gaussian_case();
  CHECK(wrong(what));
  what.precision = dtype::float32;
  CHECK(wrong(what));
  kernels.add("gaussian_grad", device_kind::cpu, not_a_number);
  CHECK(wrong(gaussian_case())->element == shape{0, 0});
}

TEST_CASE_FIXTURE(tables, "Troupe's own ops are checked in the same way") {
  CHECK_FALSE(wrong({.type = "tanh", .inputs = {{"X", {numbers({4})}}}}));
  CHECK_FALSE(
    wrong({.type = "elementwise_mul",
           .inputs = {{"X", {numbers({2, 3})}}, {"Y", {numbers({3})}}},
           .attributes = {{"axis", -1}}}));
  CHECK_FALSE(
    wrong({.type = "mul",
           .inputs = {{"X", {numbers({2, 3})}}, {"Y", {numbers({3, 4})}}}}));
  CHECK_FALSE(wrong({.type = "concat",
                     .inputs = {{"X", {numbers({2, 3}), numbers({2, 1})}}},
                     .attributes = {{"axis", 1}}}));
  CHECK_FALSE(wrong({.type = "split",
                     .inputs = {{"X", {numbers({2, 4})}}},
                     .attributes = {{"axis", 1}, {"num", 2}},
                     .outputs = {{"Out", 2}}}));
}

TEST_CASE_FIXTURE(tables, "the second variable of a slot is named") {
  struct wrong_concat : kernel {
    std::unique_ptr<kernel> right;
    void run(kernel_context& ctx) override {
      right->run(ctx);
      auto second = ctx.output_variable("X@GRAD", 1).as_tensor();
      for (auto& v : second.values<double>())
        v = v * 2;
    }
  };
  const auto inner = cpu_kernels();
  kernels.add(
    "concat_grad", device_kind::cpu, [&](const attribute_map& attributes) {
      auto made = std::make_unique<wrong_concat>();
      made->right = inner.make("concat_grad", device_kind::cpu, attributes);
      return made;
    });
  const auto found =
    wrong({.type = "concat",
           .inputs = {{"X", {numbers({2, 3}), numbers({2, 1})}}},
           .attributes = {{"axis", 1}}});
  REQUIRE(found);
  CHECK(found->variable == 1);
  CHECK(to_string(*found).starts_with("concat_grad: the gradient of X[1] at "));
}

TEST_CASE_FIXTURE(tables, "what cannot be checked is refused") {
  CHECK(caught([&] { wrong(gaussian_case()); }).code() == errc::unsupported_op);
  const gradient_case compared{
    .type = "equal", .inputs = {{"X", {numbers({2})}}, {"Y", {numbers({2})}}}};
  CHECK(
    says(caught([&] { wrong(compared); }), "the op 'equal' has no gradient"));
  with_gradient(of_another_shape);
  const auto other = caught([&] { wrong(gaussian_case()); });
  CHECK(other.code() == errc::shape_mismatch);
  CHECK(says(other, "the gradient of X has shape [1], but X has [2, 3]"));
  auto half = gaussian_case();
  half.precision = dtype::float16;
  CHECK(says(caught([&] { wrong(half); }), "not in float16"));
}

} // TEST_SUITE("graph.gradient_check")
