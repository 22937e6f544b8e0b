// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <utility>

namespace troupe::graph::schemas {

namespace {

/// Extent of the result where `a` meets `b`; 1 repeats, the known one wins.
std::int64_t meet(std::int64_t a, std::int64_t b) noexcept {
  if (a == 1 || b == 1)
    return a == 1 ? b : a;
  return a < 0 ? b : a;
}

/// Paddle's broadcast: the operand of lower rank lies over the other from
/// attribute `axis` on, -1 meaning that their last extents meet.
void infer_elementwise(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& y = s.dims("Y");
  const bool x_is_low = x.rank() < y.rank();
  auto out = x_is_low ? y : x;
  const auto& low = x_is_low ? x : y;
  const auto offset = out.rank() - low.rank();
  auto axis = s.attributes().get_int("axis", -1);
  if (axis < 0 || offset == 0)
    axis = static_cast<std::int64_t>(offset);
  s.check_attribute(axis <= static_cast<std::int64_t>(offset), "axis",
                    "at most " + std::to_string(offset) + " for X "
                      + to_string(x) + " and Y " + to_string(y));
  for (std::size_t i = 0; i < low.rank(); ++i) {
    auto& extent = out[i + static_cast<std::size_t>(axis)];
    s.check(fits(extent, low[i]) || extent == 1 || low[i] == 1, "Y",
            "a shape that broadcasts with X " + to_string(x));
    extent = meet(extent, low[i]);
  }
  s.output("Out", out, s.type("X"));
}

op_schema elementwise(std::string_view type) {
  return {.type = type,
          .inputs = {{"X"}, {"Y"}},
          .outputs = {{"Out"}},
          .infer = infer_elementwise,
          .gradient = {
            .groups = {{"X"}, {"Y"}}, .reads = {"X", "Y"}, .outputs = {"Out"}}};
}

void infer_sum(shape_inference& s) {
  for (std::size_t i = 1; i < s.num_inputs("X"); ++i)
    s.check(fits(s.dims("X", i), s.dims("X")), "X",
            "of the first one's shape " + to_string(s.dims("X")), i);
  same_as_x(s);
}

void infer_cast(shape_inference& s) {
  auto type = s.attributes().get_int("out_dtype", dtype_number(dtype::float32));
  s.output("Out", s.dims("X"), dtype_of_number(type));
}

/// One op that hands the gradient of Out on to X, with `attributes`.
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

std::vector<op_desc> scale_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  auto factor = forward.attributes.get_float("scale", 1);
  return {
    pass_gradient(context, "scale", forward.only_input("X"), scale_by(factor))};
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
  add(table, {elementwise("elementwise_add"), elementwise("elementwise_sub"),
              elementwise("elementwise_mul"), sum,
              passing("scale", same_as_x, scale_gradient),
              passing("assign", same_as_x, assign_gradient),
              passing("cast", infer_cast, cast_gradient)});
}

} // namespace troupe::graph::schemas
