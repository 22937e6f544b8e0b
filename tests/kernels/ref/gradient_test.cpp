// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>
#include <kernels/cases/gradient_difference.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <set>

namespace troupe::test {

TEST_SUITE("kernels.ref.gradient") {

namespace {

void check_gradients(const std::vector<op_case>& cases) {
  const auto table = reference_kernels();
  for (const auto& c : cases) {
    if (!c.gradient || !c.differentiate)
      continue;
    const auto text = gradient_difference(table, c);
    CHECK_MESSAGE(text.empty(), describe(c), "\n  ", text);
  }
}

/// The gradient of square with a factor of 2.0001 instead of 2.
void slightly_wrong_square_grad(kernel_context& ctx) {
  const auto x = ctx.input("X"), d = ctx.input("Out@GRAD");
  auto dx = ctx.output("X@GRAD", x.dims(), x.type());
  for (std::size_t i = 0; i < dx.values<double>().size(); ++i)
    dx.values<double>()[i] =
      2.0001 * x.values<double>()[i] * d.values<double>()[i];
}

op_case square_case() {
  return {.type = "square",
          .inputs = {{"X", {random_values({4}, 1)}}},
          .gradient = gradient_slots{{"Out"}, {"X"}, {"X"}}};
}

/// Classes along the middle axis.
op_case loss_along_axis_1() {
  return {.type = "softmax_with_cross_entropy",
          .inputs = {{"Logits", {random_values({2, 5, 3}, 1)}},
                     {"Label", {random_indices({2, 1, 3}, 2, 0, 5)}}},
          .attributes = {{"axis", 1}},
          .outputs = {{"Softmax", 1}, {"Loss", 1}},
          .gradient =
            gradient_slots{{"Loss"}, {"Label", "Softmax"}, {"Logits"}}};
}

} // namespace

TEST_CASE("matrix products have the gradient of central differences") {
  check_gradients(matmul_cases());
}
TEST_CASE("elementwise ops have the gradient of central differences") {
  check_gradients(elementwise_cases());
}
TEST_CASE("activations have the gradient of central differences") {
  check_gradients(activation_cases());
}
TEST_CASE("softmax and its loss have the gradient of central differences") {
  check_gradients(softmax_cases());
  check_gradients({loss_along_axis_1()});
}
TEST_CASE("reductions have the gradient of central differences") {
  check_gradients(reduce_cases());
}
TEST_CASE("convolutions have the gradient of central differences") {
  check_gradients(conv2d_cases());
}
TEST_CASE("pooling has the gradient of central differences") {
  check_gradients(pool2d_cases());
}
TEST_CASE("normalizations have the gradient of central differences") {
  check_gradients(normalization_cases());
}
TEST_CASE("dropout with one mask has the gradient of central differences") {
  check_gradients(dropout_cases());
}
TEST_CASE("embeddings have the gradient of central differences") {
  check_gradients(embedding_cases());
}
TEST_CASE("ops that move elements have the gradient of differences") {
  check_gradients(movement_cases());
  check_gradients(concat_cases());
}

TEST_CASE("a gradient that is wrong by 5e-5 is noticed") {
  auto table = reference_kernels();
  CHECK(gradient_difference(table, square_case()).empty());
  table.add("square_grad", device_kind::cpu, slightly_wrong_square_grad);
  CHECK_FALSE(gradient_difference(table, square_case()).empty());
}

TEST_CASE("every gradient op is differentiated by some case") {
  std::set<std::string> checked;
  for (const auto& c : all_cases())
    if (c.gradient && c.differentiate)
      checked.insert(c.type + "_grad");
  for (const auto& type : reference_kernels().op_types(device_kind::cpu))
    if (type.ends_with("_grad"))
      CHECK_MESSAGE(checked.contains(type), type);
}
} // TEST_SUITE("kernels.ref.gradient")

} // namespace troupe::test
