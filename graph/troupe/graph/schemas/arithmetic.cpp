// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <utility>

namespace troupe::graph::schemas {

namespace {

void infer_elementwise(shape_inference& s) {
  s.output("Out", broadcast(s), s.type("X"));
}

op_schema without_gradient(std::string_view type) {
  return {.type = type,
          .inputs = {{"X"}, {"Y"}},
          .outputs = {{"Out"}},
          .infer = infer_elementwise};
}

op_schema elementwise(std::string_view type,
                      std::vector<std::string_view> reads = {"X", "Y"}) {
  auto schema = without_gradient(type);
  schema.gradient = {
    .groups = {{"X"}, {"Y"}}, .reads = std::move(reads), .outputs = {"Out"}};
  return schema;
}

/// Terms must have the same shape. A scalar can be added to a tensor with one
/// element.
void infer_sum(shape_inference& s) {
  auto out = s.dims("X");
  for (std::size_t i = 1; i < s.num_inputs("X"); ++i) {
    const auto& x = s.dims("X", i);
    const bool single =
      product(x, 0, x.rank()) == 1 && product(out, 0, out.rank()) == 1;
    s.check(fits(x, out) || single, "X",
            "of the first one's shape " + to_string(s.dims("X")), i);
    if (x.rank() > out.rank())
      out = x;
  }
  s.output("Out", out, s.type("X"));
}

void infer_cast(shape_inference& s) {
  auto type = s.attributes().get_int("out_dtype", dtype_number(dtype::float32));
  s.output("Out", s.dims("X"), dtype_of_number(type));
}

/// An op of type `type` that computes the gradient of `x` from the gradient of
/// Out.
op_desc pass_gradient(const gradient_context& context, std::string type,
                      std::string_view x, attribute_map attributes) {
  op_desc op;
  op.type = std::move(type);
  op.attributes = std::move(attributes);
  op.set_input("X", {gradient_name(context.forward.only_output("Out"))});
  op.set_output("Out", {gradient_name(x)});
  return op;
}

attribute_map scale_by(float factor) {
  return {{"scale", factor}, {"bias", 0.0f}, {"bias_after_scale", true}};
}

void infer_cumsum(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& a = s.attributes();
  const auto size = product(x, 0, x.rank());
  if (x.rank() > 0)
    s.axis("axis", a.get_int("axis", -1), x.rank());
  s.output("Out", a.get_bool("flatten", false) ? shape{size} : x, s.type("X"));
}

void infer_increment(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(fits(product(x, 0, x.rank()), 1), "X", "of one element");
  same_as_x(s);
}

op_schema one_input(std::string_view type, void (*infer)(shape_inference&)) {
  return {
    .type = type, .inputs = {{"X"}}, .outputs = {{"Out"}}, .infer = infer};
}

op_schema cumsum_schema() {
  auto schema = one_input("cumsum", infer_cumsum);
  schema.gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}};
  return schema;
}

op_schema clip_schema() {
  auto schema = one_input("clip", same_as_x);
  schema.inputs.push_back({"Min", slot_arity::optional});
  schema.inputs.push_back({"Max", slot_arity::optional});
  schema.gradient = {
    .groups = {{"X"}}, .reads = {"X", "Min", "Max"}, .outputs = {"Out"}};
  return schema;
}

std::vector<op_desc> scale_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  auto factor = forward.attributes.get_float("scale", 1);
  auto op =
    pass_gradient(context, "scale", forward.only_input("X"), scale_by(factor));
  if (const auto& tensor = forward.input("ScaleTensor"); !tensor.empty())
    op.set_input("ScaleTensor", tensor);
  return {op};
}

std::vector<op_desc> sum_gradient(const gradient_context& context) {
  std::vector<op_desc> ops;
  for (const auto& x : context.forward.input("X"))
    if (context.wanted(x))
      ops.push_back(pass_gradient(context, "scale", x, scale_by(1)));
  return ops;
}

std::vector<op_desc> assign_gradient(const gradient_context& context) {
  return {
    pass_gradient(context, "assign", context.forward.only_input("X"), {})};
}

std::vector<op_desc> cast_gradient(const gradient_context& context) {
  const auto& a = context.forward.attributes;
  const auto in = static_cast<std::int32_t>(a.get_int("in_dtype", 5));
  const auto out = static_cast<std::int32_t>(a.get_int("out_dtype", 5));
  return {pass_gradient(context, "cast", context.forward.only_input("X"),
                        {{"in_dtype", out}, {"out_dtype", in}})};
}

op_schema passing(std::string_view type, void (*infer)(shape_inference&),
                  std::vector<op_desc> (*make)(const gradient_context&)) {
  return {.type = type,
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .infer = infer,
          .gradient = {
            .groups = {{"X"}}, .reads = {}, .outputs = {"Out"}, .make = make}};
}

} // namespace

void add_arithmetic(op_schema_table& table) {
  auto sum = passing("sum", infer_sum, sum_gradient);
  sum.inputs = {{"X", slot_arity::many}};
  auto scale = passing("scale", same_as_x, scale_gradient);
  scale.inputs.push_back({"ScaleTensor", slot_arity::optional});
  add(table,
      {elementwise("elementwise_add"), elementwise("elementwise_sub"),
       elementwise("elementwise_mul"),
       elementwise("elementwise_div", {"X", "Y", "Out"}),
       elementwise("elementwise_max"), elementwise("elementwise_min"),
       elementwise("elementwise_pow"), without_gradient("elementwise_mod"),
       without_gradient("elementwise_floordiv"), without_gradient("grad_add"),
       sum, scale, passing("assign", same_as_x, assign_gradient),
       passing("cast", infer_cast, cast_gradient),
       one_input("increment", infer_increment), cumsum_schema(),
       clip_schema()});
}

} // namespace troupe::graph::schemas
