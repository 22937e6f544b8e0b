// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/second_derivatives.hpp>

#include <support/caught.hpp>
#include <troupe/graph/gradients.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>
#include <troupe/graph/own_ops/gradient_check.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::test;

TEST_SUITE("graph.second_derivatives") {

namespace {

struct checked {
  op_schema_table schemas = second_derivatives();
  kernel_table kernels = cpu_kernels();
  arena memory{make_host_memory_source()};

  /// Numbers without pattern in [-1, 1], none close to 0.
  tensor numbers(const shape& dims, int seed = 0) {
    auto value = tensor::make(memory, dims, dtype::float32);
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      const auto n = std::sin(static_cast<float>(i * i + 3 * i + 7 * seed + 1));
      value.data<float>()[i] = n + (n < 0 ? -0.1f : 0.1f);
    }
    return value;
  }
  /// Empty, or what is wrong.
  std::string wrong(const gradient_case& what) {
    const auto found = find_wrong_gradient(schemas, kernels, what);
    return found ? to_string(*found) : std::string{};
  }
  /// Checks both gradients of an op with two operands, each on its own.
  std::string wrong_of_two(const std::string& type, const shape& x,
                           const shape& y, const shape& out,
                           const attribute_map& attributes) {
    gradient_case what{.type = type + "_grad",
                       .inputs = {{"X", {numbers(x)}},
                                  {"Y", {numbers(y, 1)}},
                                  {"Out@GRAD", {numbers(out, 2)}}},
                       .attributes = attributes};
    what.outputs = {{"Y@GRAD", 0}};
    const auto first = wrong(what);
    what.outputs = {{"X@GRAD", 0}};
    return first + wrong(what);
  }
};

} // namespace

TEST_CASE_FIXTURE(checked, "the gradients of products' gradients are those of "
                           "differences") {
  const attribute_map columns{{"x_num_col_dims", std::int32_t{2}},
                              {"y_num_col_dims", std::int32_t{1}}};
  CHECK(wrong_of_two("mul", {2, 2, 3}, {3, 4}, {2, 2, 4}, columns) == "");
  const attribute_map transposed{{"trans_x", false}, {"trans_y", true}};
  CHECK(wrong_of_two("matmul_v2", {2, 3}, {4, 3}, {2, 4}, transposed) == "");
  const attribute_map scaled{
    {"transpose_X", true}, {"transpose_Y", false}, {"alpha", 0.5f}};
  CHECK(wrong_of_two("matmul", {3, 2}, {3, 4}, {2, 4}, scaled) == "");
  const attribute_map from_1{{"axis", std::int32_t{1}}};
  CHECK(wrong_of_two("elementwise_mul", {2, 3}, {3}, {2, 3}, from_1) == "");
}

TEST_CASE_FIXTURE(checked, "the gradients of terms' gradients are those of "
                           "differences, broadcast or not") {
  const attribute_map last{{"axis", std::int32_t{-1}}};
  CHECK(wrong_of_two("elementwise_add", {2, 3}, {3}, {2, 3}, last) == "");
  CHECK(wrong_of_two("elementwise_sub", {2, 3}, {2, 3}, {2, 3}, last) == "");
}

TEST_CASE_FIXTURE(checked, "the gradients of a convolution's gradients are "
                           "those of differences") {
  gradient_case what{
    .type = "conv2d_grad",
    .inputs = {{"Input", {numbers({1, 2, 4, 4})}},
               {"Filter", {numbers({2, 2, 3, 3}, 1)}},
               {"Output@GRAD", {numbers({1, 2, 4, 4}, 2)}}},
    .attributes = {{"strides", std::vector<std::int32_t>{1, 1}},
                   {"paddings", std::vector<std::int32_t>{1, 1}},
                   {"dilations", std::vector<std::int32_t>{1, 1}},
                   {"groups", std::int32_t{1}}},
    .precision = dtype::float32};
  what.outputs = {{"Filter@GRAD", 0}};
  CHECK(wrong(what) == "");
  what.outputs = {{"Input@GRAD", 0}};
  CHECK(wrong(what) == "");
}

TEST_CASE_FIXTURE(checked, "the gradients of functions' gradients are those of "
                           "differences") {
  for (const std::string type :
       {"relu", "leaky_relu", "square", "tanh", "sigmoid"}) {
    CAPTURE(type);
    const auto slot = type == "leaky_relu" || type == "square" ? "X" : "Out";
    CHECK(wrong({.type = type + "_grad",
                 .inputs = {{slot, {numbers({2, 3})}},
                            {"Out@GRAD", {numbers({2, 3}, 1)}}}})
          == "");
  }
  for (const std::string type : {"mean", "reduce_mean", "reduce_sum"}) {
    CAPTURE(type);
    const bool is_whole = type == "mean";
    gradient_case what{
      .type = type + "_grad",
      .inputs = {{"X", {numbers({2, 3})}},
                 {"Out@GRAD", {numbers(is_whole ? shape{} : shape{2}, 1)}}}};
    if (!is_whole)
      what.attributes = {{"dim", std::vector<std::int32_t>{1}}};
    CHECK(wrong(what) == "");
  }
}

TEST_CASE("the gradient of a linear layer's input depends on weights and on "
          "the output's gradient, not on the input") {
  network net;
  auto x = net.data("x", {-1, 2});
  auto y = layers::fc(x, 1, {.with_bias = false});
  auto p = net.main;
  const auto schemas = op_schemas();
  const std::vector<std::string> outputs{y.name()}, inputs{"x"};
  append_gradients(p, outputs, inputs, schemas);
  for (auto& op : p.main().ops)
    for (auto* slots : {&op.inputs, &op.outputs})
      for (auto& slot : *slots)
        for (auto& name : slot.arguments)
          if (const auto at = name.find("@GRAD"); at != name.npos) {
            const auto old = name;
            name.replace(at, 5, "@FIRST");
            auto var = p.main().var(old);
            var.name = name;
            p.main().add_var(std::move(var));
          }
  auto again = op_schemas();
  again.merge(second_derivatives());
  const std::vector<std::string> first{"x@FIRST"},
    from{"x", y.name() + "@FIRST@GIVEN"};
  const auto made = append_gradients(p, first, from, again);
  CHECK(made.inputs
        == std::vector<std::string>{"", y.name() + "@FIRST@GIVEN@GRAD"});
  REQUIRE(made.parameters.size() == 1);
  CHECK(made.parameters[0].parameter == "fc_0.w_0");
}

} // TEST_SUITE("graph.second_derivatives")
