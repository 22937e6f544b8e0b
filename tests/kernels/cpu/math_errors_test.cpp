// SPDX-License-Identifier: Apache-2.0
// What the mathematical ops refuse, beside what the reference refuses.
#include <support/op_runner.hpp>

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.cpu.math_errors") {

namespace {

using named_values = std::vector<std::pair<std::string, op_value>>;
using ints = std::vector<std::int32_t>;

op_case make(const std::string& type, const named_values& inputs,
             attribute_map attributes = {},
             std::vector<std::string> outputs = {"Out"}) {
  op_case c;
  c.type = type;
  c.attributes = std::move(attributes);
  c.outputs.clear();
  for (const auto& [slot, value] : inputs)
    c.inputs[slot] = {value};
  for (const auto& slot : outputs)
    c.outputs[slot] = 1;
  return c;
}

op_value zeros(const shape& dims, dtype type = dtype::float32) {
  return values_of(
    dims, std::vector<double>(static_cast<std::size_t>(dims.numel())), type);
}

std::optional<errc> failure(const op_case& c) {
  try {
    run_op(cpu_kernels(), c);
  } catch (const error& e) {
    return e.code();
  }
  return std::nullopt;
}

op_value labels(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return values_of({count, 1}, std::move(values), dtype::int64);
}

} // namespace

TEST_CASE("operands that do not broadcast are refused") {
  for (const char* type : {"elementwise_add", "elementwise_div", "less_than",
                           "elementwise_max", "logical_and"}) {
    CHECK(failure(make(type, {{"X", zeros({2, 3})}, {"Y", zeros({2})}}))
          == errc::shape_mismatch);
    CHECK(failure(make(type, {{"X", zeros({2, 3})}, {"Y", zeros({3})}},
                       {{"axis", 2}}))
          == errc::shape_mismatch);
  }
}

TEST_CASE("operands of different dtypes are refused") {
  for (const char* type : {"elementwise_add", "equal", "matmul_v2", "dot"})
    CHECK(failure(make(
            type, {{"X", zeros({2, 2})}, {"Y", zeros({2, 2}, dtype::int64)}}))
          == errc::dtype_mismatch);
  CHECK(failure(make("exp", {{"X", zeros({2}, dtype::int64)}}))
        == errc::dtype_mismatch);
  CHECK(failure(make("softmax", {{"X", zeros({2}, dtype::int32)}}))
        == errc::dtype_mismatch);
}

TEST_CASE("integers are not divided by zero, nor overflow the division") {
  for (const char* type :
       {"elementwise_div", "elementwise_mod", "elementwise_floordiv"})
    for (const auto dt : {dtype::int32, dtype::int64}) {
      const auto x = values_of({2}, {6, 7}, dt);
      CHECK(failure(make(type, {{"X", x}, {"Y", values_of({2}, {2, 0}, dt)}}))
            == errc::invalid_argument);
      const auto least = values_of({1}, {-2147483648.0}, dtype::int32);
      const auto minus_one = values_of({1}, {-1}, dtype::int32);
      CHECK_FALSE(failure(make(type, {{"X", least}, {"Y", minus_one}})));
    }
}

TEST_CASE("reductions refuse axes that X has not and nothing to compare") {
  for (const char* type : {"reduce_sum", "reduce_max", "reduce_prod",
                           "reduce_all", "frobenius_norm"})
    CHECK(failure(make(type, {{"X", zeros({2, 3})}}, {{"dim", ints{2}}}))
          == errc::out_of_range);
  CHECK(failure(make("reduce_max", {{"X", zeros({0, 3})}}, {{"dim", ints{0}}}))
        == errc::shape_mismatch);
  CHECK(failure(make("p_norm", {{"X", zeros({2, 3})}}, {{"axis", -3}}))
        == errc::out_of_range);
  CHECK(failure(make("logsumexp", {{"X", zeros({2, 3})}}, {{"axis", ints{-3}}}))
        == errc::out_of_range);
  CHECK(failure(make("cumsum", {{"X", zeros({2, 3})}}, {{"axis", 2}}))
        == errc::out_of_range);
  CHECK(failure(make("log_softmax", {{"X", zeros({2, 3})}}, {{"axis", 2}}))
        == errc::out_of_range);
}

TEST_CASE("gradients refuse an Out@GRAD of another shape") {
  const auto x = zeros({2, 3});
  for (const char* type : {"elu_grad", "silu_grad", "clip_grad", "log_grad"})
    CHECK(failure(make(type, {{"X", x}, {"Out", x}, {"Out@GRAD", zeros({3})}},
                       {}, {"X@GRAD"}))
          == errc::shape_mismatch);
  for (const char* type : {"reduce_max_grad", "reduce_sum_grad", "p_norm_grad",
                           "cumsum_grad", "frobenius_norm_grad"})
    CHECK(failure(make(
            type, {{"X", x}, {"Out", zeros({5})}, {"Out@GRAD", zeros({5})}}, {},
            {"X@GRAD"}))
          == errc::shape_mismatch);
  CHECK(failure(make("elementwise_div_grad",
                     {{"X", x}, {"Y", zeros({3})}, {"Out@GRAD", zeros({3})}},
                     {}, {"X@GRAD", "Y@GRAD"}))
        == errc::shape_mismatch);
}

TEST_CASE("labels that are no classes are refused") {
  for (const double label : {-1.0, 3.0, 1e12}) {
    CAPTURE(label);
    CHECK(failure(make("softmax_with_cross_entropy",
                       {{"Logits", zeros({3, 2})},
                        {"Label", values_of({1, 2}, {0, label}, dtype::int64)}},
                       {{"axis", 0}}, {"Softmax", "Loss"}))
          == errc::out_of_range);
    const named_values x{{"X", zeros({2, 3})}, {"Label", labels({0, label})}};
    CHECK(failure(make("cross_entropy", x, {}, {"Y"})) == errc::out_of_range);
    CHECK(failure(make("cross_entropy2", x, {}, {"Y", "XShape", "MatchX"}))
          == errc::out_of_range);
    auto saved = x;
    saved.emplace_back("Y@GRAD", zeros({2, 1}));
    CHECK(failure(make("cross_entropy_grad", saved, {}, {"X@GRAD"}))
          == errc::out_of_range);
    saved.emplace_back("MatchX", zeros({2, 1}));
    saved.emplace_back("XShape", zeros({0, 2, 3}));
    CHECK(failure(make("cross_entropy_grad2", saved, {}, {"X@GRAD"}))
          == errc::out_of_range);
  }
}

TEST_CASE("losses refuse labels of another shape") {
  const auto x = zeros({2, 3});
  const auto label = zeros({2, 2});
  CHECK(failure(make("bce_loss", {{"X", x}, {"Label", label}}))
        == errc::shape_mismatch);
  CHECK(failure(make("kldiv_loss", {{"X", x}, {"Target", label}}, {}, {"Loss"}))
        == errc::shape_mismatch);
  CHECK(failure(make("log_loss", {{"Predicted", x}, {"Labels", label}},
                     {{"epsilon", 1e-4f}}, {"Loss"}))
        == errc::shape_mismatch);
  CHECK(failure(
          make("huber_loss", {{"X", x}, {"Y", label}}, {}, {"Out", "Residual"}))
        == errc::shape_mismatch);
  CHECK(failure(make("cross_entropy", {{"X", x}, {"Label", label}},
                     {{"soft_label", true}}, {"Y"}))
        == errc::shape_mismatch);
  CHECK(failure(make("sigmoid_cross_entropy_with_logits",
                     {{"X", x}, {"Label", x}, {"pos_weight", label}}))
        == errc::shape_mismatch);
}

TEST_CASE("numbers given as tensors have one element") {
  const auto x = zeros({3});
  CHECK(failure(make("pow", {{"X", x}, {"FactorTensor", zeros({2})}}))
        == errc::shape_mismatch);
  CHECK(failure(make("scale", {{"X", x}, {"ScaleTensor", zeros({2})}}))
        == errc::shape_mismatch);
  CHECK(failure(make("clip", {{"X", x}, {"Min", zeros({2})}}))
        == errc::shape_mismatch);
  CHECK(failure(make("increment", {{"X", x}})) == errc::shape_mismatch);
  CHECK(failure(make("clip", {{"X", x}}, {{"min", 2.0f}, {"max", 1.0f}}))
        == errc::invalid_argument);
}

TEST_CASE("products refuse operands that do not fit") {
  CHECK(failure(make("matmul", {{"X", zeros({2, 3})}, {"Y", zeros({2, 3})}}))
        == errc::shape_mismatch);
  CHECK(failure(make("bmm", {{"X", zeros({2, 3, 4})}, {"Y", zeros({3, 4, 2})}}))
        == errc::shape_mismatch);
  CHECK(failure(make("dot", {{"X", zeros({2, 3})}, {"Y", zeros({3})}}))
        == errc::shape_mismatch);
  CHECK(failure(make("matmul_v2", {{"X", zeros({})}, {"Y", zeros({3})}}))
        == errc::shape_mismatch);
}

TEST_CASE("a slice with fewer starts than axes is refused") {
  for (const char* type : {"slice", "strided_slice", "set_value"}) {
    attribute_map cut{{"axes", ints{0, 1}},
                      {"starts", ints{0}},
                      {"ends", ints{1, 1}},
                      {"strides", ints{1, 1}},
                      {"steps", ints{1, 1}},
                      {"shape", ints{1}},
                      {"fp32_values", std::vector<float>{0}}};
    const auto input = std::pair{std::string("Input"), zeros({2, 3})};
    CHECK(failure(make(type, {input}, cut)) == errc::invalid_argument);
    cut.set("starts", ints{0, 0});
    CHECK_FALSE(failure(make(type, {input}, cut)));
  }
}
} // TEST_SUITE("kernels.cpu.math_errors")
