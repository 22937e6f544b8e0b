// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case two(const std::string& type, const shape& x, const shape& y) {
  return {
    .type = type,
    .inputs = {{"X", {random_values(x, 1)}}, {"Y", {random_values(y, 2)}}}};
}

op_case two_gradients(const std::string& type, const shape& x, const shape& y,
                      const shape& out) {
  auto c = two(type, x, y);
  c.inputs["Out@GRAD"] = {random_values(out, 3)};
  c.outputs = {{"X@GRAD", 1}, {"Y@GRAD", 1}};
  return c;
}

op_case one(const std::string& type, const shape& x, attribute_map attributes) {
  return {.type = type,
          .inputs = {{"X", {random_values(x, 1)}}},
          .attributes = std::move(attributes)};
}

op_case loss(double label) {
  return {.type = "softmax_with_cross_entropy",
          .inputs = {{"Logits", {random_values({1, 4}, 1)}},
                     {"Label", {values_of({1, 1}, {label}, dtype::int64)}}},
          .outputs = {{"Softmax", 1}, {"Loss", 1}}};
}

op_case lookup(double id) {
  return {.type = "lookup_table_v2",
          .inputs = {{"W", {random_values({4, 2}, 1)}},
                     {"Ids", {values_of({1}, {id}, dtype::int64)}}}};
}

op_case conv(const shape& input, const shape& filter, int groups) {
  return {.type = "conv2d",
          .inputs = {{"Input", {random_values(input, 1)}},
                     {"Filter", {random_values(filter, 2)}}},
          .attributes = {{"groups", groups}},
          .outputs = {{"Output", 1}}};
}

op_case bad_sgd(const shape& param, op_value grad) {
  return {.type = "sgd",
          .inputs = {{"Param", {random_values(param, 1)}},
                     {"Grad", {std::move(grad)}},
                     {"LearningRate", {values_of({1}, {0.5})}}},
          .outputs = {{"ParamOut", 1}}};
}

op_case joined(const std::string& type, const shape& x, const shape& y) {
  return {.type = type,
          .inputs = {{"X", {random_values(x, 1), random_values(y, 2)}}},
          .attributes = {{"axis", 0}}};
}

} // namespace

std::vector<bad_case> bad_cases() {
  const auto shape_error = errc::shape_mismatch;
  return {
    {two("mul", {2, 3}, {4, 2}), shape_error},
    {two_gradients("mul_grad", {2, 3}, {3, 4}, {2, 3}), shape_error},
    {two("matmul_v2", {2, 3}, {4, 2}), shape_error},
    {two("matmul_v2", {2, 2, 3}, {3, 3, 2}), shape_error},
    {two("elementwise_add", {2, 3}, {2}), shape_error},
    {two("elementwise_mul", {2, 3}, {2, 4}), shape_error},
    {two_gradients("elementwise_add_grad", {2, 3}, {3}, {2, 2}), shape_error},
    {conv({1, 3, 4, 4}, {2, 2, 3, 3}, 1), shape_error},
    {conv({1, 3, 4, 4}, {2, 3, 5, 5}, 1), shape_error},
    {conv({1, 4, 4, 4}, {3, 2, 3, 3}, 2), shape_error},
    {one("pool2d", {1, 1, 3, 3}, {{"ksize", ints{4, 4}}}), shape_error},
    {one("reshape2", {2, 3}, {{"shape", ints{4, 2}}}), shape_error},
    {one("reshape2", {2, 3}, {{"shape", ints{-1, 4}}}), shape_error},
    {one("softmax", {2, 3}, {{"axis", 2}}), errc::out_of_range},
    {one("reduce_sum", {2, 3}, {{"dim", ints{2}}}), errc::out_of_range},
    {one("top_k_v2", {2, 3}, {{"k", 4}}), errc::out_of_range},
    {joined("concat", {2, 3}, {2, 4}), shape_error},
    {joined("sum", {2, 3}, {2, 4}), shape_error},
    {bad_sgd({3, 2}, random_values({3, 3}, 1)), shape_error},
    {bad_sgd({3, 2}, random_rows({4, 2}, {3}, 1)), shape_error},
    {loss(4), errc::out_of_range},
    {loss(-1), errc::out_of_range},
    {lookup(4), errc::out_of_range},
    {lookup(-1), errc::out_of_range},
  };
}

} // namespace troupe::test
