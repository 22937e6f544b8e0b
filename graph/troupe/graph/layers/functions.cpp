// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers/layer_writer.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <utility>

namespace troupe::graph::layers {

namespace {

/// A layer that consists of one op and is named after its type.
variable_ref unary(const char* type, const variable_ref& x,
                   attribute_map attributes, call at) {
  return layer_writer{x.net(), type, at}.append(type, {slot("X", x)},
                                                std::move(attributes));
}

variable_ref elementwise(const char* type, const variable_ref& x,
                         const variable_ref& y, call at) {
  return layer_writer{x.net(), type, at}.append(
    type, {slot("X", x), slot("Y", y)}, {{"axis", std::int32_t{-1}}});
}

} // namespace

variable_ref relu(const variable_ref& x, call at) {
  return unary("relu", x, {}, at);
}

variable_ref sigmoid(const variable_ref& x, call at) {
  return unary("sigmoid", x, {}, at);
}

variable_ref tanh(const variable_ref& x, call at) {
  return unary("tanh", x, {}, at);
}

variable_ref square(const variable_ref& x, call at) {
  return unary("square", x, {}, at);
}

variable_ref gelu(const variable_ref& x, const gelu_options& options, call at) {
  return unary("gelu", x, {{"approximate", options.approximate}}, at);
}

variable_ref softmax(const variable_ref& x, const softmax_options& options,
                     call at) {
  return unary("softmax", x, {{"axis", options.axis}}, at);
}

variable_ref activation(const variable_ref& x, const std::string& name,
                        call at) {
  if (name.empty())
    return x;
  return layer_writer{x.net(), name, at}.activate(x, name);
}

variable_ref scale(const variable_ref& x, const scale_options& options,
                   call at) {
  return unary("scale", x,
               {{"scale", options.scale},
                {"bias", options.bias},
                {"bias_after_scale", true}},
               at);
}

variable_ref dropout(const variable_ref& x, const dropout_options& options,
                     call at) {
  const char* how =
    options.upscale_in_train ? "upscale_in_train" : "downgrade_in_infer";
  layer_writer layer{x.net(), "dropout", at};
  return layer.append_with("Mask", "dropout", {slot("X", x)},
                           {{"dropout_prob", options.probability},
                            {"is_test", false},
                            {"fix_seed", options.seed != 0},
                            {"seed", options.seed},
                            {"dropout_implementation", std::string{how}}});
}

variable_ref cast(const variable_ref& x, dtype type, call at) {
  return unary(
    "cast", x,
    {{"in_dtype", dtype_number(x.type())}, {"out_dtype", dtype_number(type)}},
    at);
}

variable_ref assign(const variable_ref& x, call at) {
  return unary("assign", x, {}, at);
}

variable_ref add(const variable_ref& x, const variable_ref& y, call at) {
  return elementwise("elementwise_add", x, y, at);
}

variable_ref sub(const variable_ref& x, const variable_ref& y, call at) {
  return elementwise("elementwise_sub", x, y, at);
}

variable_ref mul(const variable_ref& x, const variable_ref& y, call at) {
  return elementwise("elementwise_mul", x, y, at);
}

variable_ref sum(const std::vector<variable_ref>& x, call at) {
  auto terms = slot("X", x);
  layer_writer layer{x.front().net(), "sum", at};
  return layer.append("sum", {std::move(terms)}, {});
}

variable_ref matmul(const variable_ref& x, const variable_ref& y,
                    const matmul_options& options, call at) {
  layer_writer layer{x.net(), "matmul_v2", at};
  return layer.append(
    "matmul_v2", {slot("X", x), slot("Y", y)},
    {{"trans_x", options.transpose_x}, {"trans_y", options.transpose_y}});
}

} // namespace troupe::graph::layers
