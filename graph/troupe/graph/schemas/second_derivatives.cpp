// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/second_derivatives.hpp>

#include <troupe/graph/schemas/families.hpp>

#include <algorithm>
#include <utility>

namespace troupe::graph {

namespace {

using op_list = std::vector<op_desc>;

/// The slots of a gradient op with two operands.
struct operand_slots {
  std::string_view a, b, result, a_grad, b_grad, result_grad;
};

constexpr operand_slots xy{"X", "Y", "Out", "X@GRAD", "Y@GRAD", "Out@GRAD"};
constexpr operand_slots filtering{"Input",      "Filter",      "Output",
                                  "Input@GRAD", "Filter@GRAD", "Output@GRAD"};

/// "tanh" of "tanh_grad".
std::string forward_type(const op_desc& gradient) {
  return gradient.type.substr(0, gradient.type.rfind("_grad"));
}

/// A name for a value between ops, of the shape of `like`. The op's output
/// makes it unique.
std::string between(const std::string& like, const std::string& op_output,
                    const std::string& what) {
  auto unique = op_output;
  std::ranges::replace(unique, '@', '.');
  return gradient_name(like) + "@" + what + "." + unique;
}

op_desc scaled(const std::string& x, float factor, const std::string& to) {
  op_desc op;
  op.type = "scale";
  op.attributes = {
    {"scale", factor}, {"bias", 0.0f}, {"bias_after_scale", true}};
  op.set_input("X", {x});
  op.set_output("Out", {to});
  return op;
}

op_desc with_operands(std::string type, const std::string& x,
                      const std::string& y, const std::string& to,
                      attribute_map attributes = {{"axis", std::int32_t{-1}}}) {
  op_desc op;
  op.type = std::move(type);
  op.attributes = std::move(attributes);
  op.set_input("X", {x});
  op.set_input("Y", {y});
  op.set_output("Out", {to});
  return op;
}

/// Of an op that is linear in each of two operands. Its gradient op computes a
/// sum over dOut * f(a, b) as a function of dOut and one operand, say b. The
/// gradient of that with `da`, the gradient of the result, in a's place: for
/// dOut it is f(da, b), for b that of the same gradient op.
template <const operand_slots& Slots>
void add_bilinear(op_list& made, const gradient_context& context,
                  bool is_first) {
  const auto& g = context.forward;
  const auto& written = g.output(is_first ? Slots.a_grad : Slots.b_grad);
  if (written.empty())
    return;
  const auto& result_grad = g.only_input(Slots.result_grad);
  const auto& other = g.only_input(is_first ? Slots.b : Slots.a);
  op_desc again;
  again.attributes = g.attributes;
  again.set_input(std::string{Slots.a},
                  {is_first ? gradient_name(written[0]) : other});
  again.set_input(std::string{Slots.b},
                  {is_first ? other : gradient_name(written[0])});
  if (context.wanted(result_grad)) {
    auto forward = again;
    forward.type = forward_type(g);
    forward.set_output(std::string{Slots.result}, {gradient_name(result_grad)});
    made.push_back(std::move(forward));
  }
  if (context.wanted(other)) {
    again.type = g.type;
    again.set_input(std::string{Slots.result_grad}, {result_grad});
    again.set_output(std::string{is_first ? Slots.b_grad : Slots.a_grad},
                     {gradient_name(other)});
    made.push_back(std::move(again));
  }
}

template <const operand_slots& Slots>
op_list of_bilinear(const gradient_context& context) {
  op_list made;
  add_bilinear<Slots>(made, context, true);
  add_bilinear<Slots>(made, context, false);
  return made;
}

/// Of a sum or difference: the op itself, with zero in place of the other
/// operand, which may be broadcast.
op_list of_terms(const gradient_context& context) {
  const auto& g = context.forward;
  const auto& result_grad = g.only_input("Out@GRAD");
  op_list made;
  for (const bool is_first : {true, false}) {
    const auto& written = g.output(is_first ? "X@GRAD" : "Y@GRAD");
    if (written.empty() || !context.wanted(result_grad))
      continue;
    const auto& other = g.only_input(is_first ? "Y" : "X");
    const auto zero = between(other, written[0], "ZERO");
    const auto given = gradient_name(written[0]);
    made.push_back(scaled(other, 0, zero));
    made.push_back(with_operands(forward_type(g), is_first ? given : zero,
                                 is_first ? zero : given,
                                 gradient_name(result_grad), g.attributes));
  }
  return made;
}

/// Of a linear op: the op itself.
op_list of_linear(const gradient_context& context) {
  const auto& g = context.forward;
  if (!context.wanted(g.only_input("Out@GRAD")))
    return {};
  op_desc op;
  op.type = forward_type(g);
  op.attributes = g.attributes;
  op.set_input("X", {gradient_name(g.only_output("X@GRAD"))});
  op.set_output("Out", {gradient_name(g.only_input("Out@GRAD"))});
  return {op};
}

/// For dX = dOut * slope: the same gradient op, once more.
void add_slope(op_list& made, const gradient_context& context) {
  const auto& g = context.forward;
  const auto& result_grad = g.only_input("Out@GRAD");
  if (!context.wanted(result_grad))
    return;
  auto again = g;
  again.set_input("Out@GRAD", {gradient_name(g.only_output("X@GRAD"))});
  again.set_output("X@GRAD", {gradient_name(result_grad)});
  made.push_back(std::move(again));
}

/// The slope is constant almost everywhere.
op_list of_piecewise_linear(const gradient_context& context) {
  op_list made;
  add_slope(made, context);
  return made;
}

/// The product of dOut and the gradient of dX; returns its name.
std::string add_product(op_list& made, const op_desc& g) {
  const auto& result_grad = g.only_input("Out@GRAD");
  const auto& written = g.only_output("X@GRAD");
  auto name = between(written, written, "PRODUCT");
  made.push_back(with_operands("elementwise_mul", result_grad,
                               gradient_name(written), name));
  return name;
}

/// Writes 2 * x * factor.
op_desc twice(const std::string& x, const std::string& factor,
              const std::string& to) {
  op_desc op;
  op.type = "square_grad";
  op.set_input("X", {x});
  op.set_input("Out@GRAD", {factor});
  op.set_output("X@GRAD", {to});
  return op;
}

/// dX = 2 x dOut
op_list of_square(const gradient_context& context) {
  const auto& x = context.forward.only_input("X");
  op_list made;
  add_slope(made, context);
  if (context.wanted(x)) {
    const auto product = add_product(made, context.forward);
    made.push_back(scaled(product, 2, gradient_name(x)));
  }
  return made;
}

/// For dX = (c - y^2) dOut, or (y - y^2) dOut: calls `finish` with what the
/// gradient of y is made of, the product of dOut and the gradient of dX, and
/// 2 y times that.
template <class Finish>
op_list of_slope_in_result(const gradient_context& context, Finish finish) {
  const auto& g = context.forward;
  const auto& y = g.only_input("Out");
  op_list made;
  add_slope(made, context);
  if (context.wanted(y)) {
    const auto product = add_product(made, g);
    const auto term = between(y, g.only_output("X@GRAD"), "TERM");
    made.push_back(twice(y, product, term));
    made.push_back(finish(product, term, gradient_name(y)));
  }
  return made;
}

/// dX = (1 - y^2) dOut
op_list of_tanh(const gradient_context& context) {
  return of_slope_in_result(context,
                            [](const auto&, const auto& term, const auto& to) {
                              return scaled(term, -1, to);
                            });
}

/// dX = (y - y^2) dOut
op_list of_sigmoid(const gradient_context& context) {
  return of_slope_in_result(
    context, [](const auto& product, const auto& term, const auto& to) {
      return with_operands("elementwise_sub", product, term, to);
    });
}

template <const operand_slots& Slots>
void infer_operands(shape_inference& s) {
  s.output(Slots.a_grad, s.dims(Slots.a), s.type(Slots.a));
  s.output(Slots.b_grad, s.dims(Slots.b), s.type(Slots.b));
}

template <const operand_slots& Slots>
op_schema with_two(std::string_view type,
                   op_list (*make)(const gradient_context&)) {
  return {.type = type,
          .inputs = {{Slots.a}, {Slots.b}, {Slots.result_grad}},
          .outputs = {{Slots.a_grad, slot_arity::optional},
                      {Slots.b_grad, slot_arity::optional}},
          .infer = infer_operands<Slots>,
          .gradient = {.groups = {{Slots.a, Slots.b, Slots.result_grad}},
                       .reads = {},
                       .outputs = {Slots.a_grad, Slots.b_grad},
                       .make = make}};
}

void as_x(shape_inference& s) {
  s.output("X@GRAD", s.dims("X"), s.type("X"));
}

void as_out(shape_inference& s) {
  s.output("X@GRAD", s.dims("Out"), s.type("Out"));
}

/// @param reads "X" or "Out"
op_schema with_one(std::string_view type, std::string_view reads,
                   op_list (*make)(const gradient_context&)) {
  return {.type = type,
          .inputs = {{reads}, {"Out@GRAD"}},
          .outputs = {{"X@GRAD"}},
          .infer = reads == "X" ? as_x : as_out,
          .gradient = {.groups = {{reads, "Out@GRAD"}},
                       .reads = {},
                       .outputs = {"X@GRAD"},
                       .make = make}};
}

} // namespace

op_schema_table second_derivatives() {
  op_schema_table table;
  for (auto type :
       {"mul_grad", "matmul_grad", "matmul_v2_grad", "elementwise_mul_grad"})
    schemas::add(table, {with_two<xy>(type, of_bilinear<xy>)});
  schemas::add(table,
               {with_two<filtering>("conv2d_grad", of_bilinear<filtering>),
                with_two<xy>("elementwise_add_grad", of_terms),
                with_two<xy>("elementwise_sub_grad", of_terms),
                with_one("mean_grad", "X", of_linear),
                with_one("reduce_mean_grad", "X", of_linear),
                with_one("reduce_sum_grad", "X", of_linear),
                with_one("relu_grad", "Out", of_piecewise_linear),
                with_one("leaky_relu_grad", "X", of_piecewise_linear),
                with_one("square_grad", "X", of_square),
                with_one("tanh_grad", "Out", of_tanh),
                with_one("sigmoid_grad", "Out", of_sigmoid)});
  return table;
}

} // namespace troupe::graph
