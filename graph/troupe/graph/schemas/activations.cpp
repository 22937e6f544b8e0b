// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

void infer_softmax(shape_inference& s) {
  const auto rank = s.dims("X").rank();
  if (rank > 0)
    s.axis("axis", s.attributes().get_int("axis", -1), rank);
  same_as_x(s);
}

/// An op from X to Out whose gradient op reads `reads`.
op_schema unary(std::string_view type, std::vector<std::string_view> reads,
                void (*infer)(shape_inference&) = same_as_x) {
  return {.type = type,
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .infer = infer,
          .gradient = {
            .groups = {{"X"}}, .reads = std::move(reads), .outputs = {"Out"}}};
}

op_schema pow_schema() {
  auto schema = unary("pow", {"X", "FactorTensor"});
  schema.inputs.push_back({"FactorTensor", slot_arity::optional});
  return schema;
}

/// For functions that are constant almost everywhere: the gradient is zero,
/// made by an op scale.
std::vector<op_desc> zero_gradient(const gradient_context& context) {
  op_desc op;
  op.type = "scale";
  op.attributes = {{"scale", 0.0f}, {"bias", 0.0f}, {"bias_after_scale", true}};
  op.set_input("X", {gradient_name(context.forward.only_output("Out"))});
  op.set_output("Out", {gradient_name(context.forward.only_input("X"))});
  return {op};
}

op_schema sign_schema() {
  auto schema = unary("sign", {});
  schema.gradient.make = zero_gradient;
  return schema;
}

constexpr std::string_view from_output[] = {
  "relu",  "relu6",      "sigmoid", "tanh", "exp",         "expm1",
  "rsqrt", "reciprocal", "sqrt",    "selu", "hard_sigmoid"};

constexpr std::string_view from_input[] = {
  "abs",   "brelu",      "celu",        "cos",         "erf",
  "gelu",  "hard_swish", "hard_shrink", "leaky_relu",  "log",
  "log10", "log1p",      "log2",        "logsigmoid",  "mish",
  "sin",   "softplus",   "softshrink",  "softsign",    "square",
  "stanh", "swish",      "tan",         "tanh_shrink", "thresholded_relu"};

constexpr std::string_view from_both[] = {"elu", "silu"};

constexpr std::string_view steps[] = {"ceil", "floor", "round"};

} // namespace

void add_activations(op_schema_table& table) {
  for (auto type : from_output)
    add(table, {unary(type, {"Out"})});
  for (auto type : from_input)
    add(table, {unary(type, {"X"})});
  for (auto type : from_both)
    add(table, {unary(type, {"X", "Out"})});
  for (auto type : steps)
    add(table, {unary(type, {})});
  add(table, {unary("softmax", {"Out"}, infer_softmax),
              unary("log_softmax", {"Out"}, infer_softmax), pow_schema(),
              sign_schema()});
}

} // namespace troupe::graph::schemas
