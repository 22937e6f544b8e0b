// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <span>

namespace troupe::graph::schemas {

namespace {

using names = std::initializer_list<std::string_view>;

void check_scalar(const shape_inference& s, std::string_view slot,
                  std::size_t index = 0) {
  if (s.num_inputs(slot) > index) {
    const auto& dims = s.dims(slot, index);
    s.check(product(dims, 0, dims.rank()) == 1, slot, "one element", index);
  }
}

/// Checks that an input has the shape of Param; `out` is its update in place.
void update(shape_inference& s, std::string_view slot, std::string_view out,
            std::size_t index = 0) {
  if (s.num_inputs(slot) <= index)
    return;
  const auto& param = s.dims("Param", index);
  s.check(fits(s.dims(slot, index), param), slot,
          "of the shape of Param " + to_string(param), index);
  s.output(out, s.dims(slot, index), s.type(slot, index), index);
}

void check_gradient(const shape_inference& s, std::size_t index = 0) {
  check_scalar(s, "LearningRate", index);
  s.check(fits(s.dims("Grad", index), s.dims("Param", index)), "Grad",
          "of the shape of Param " + to_string(s.dims("Param", index)), index);
}

/// Param and the slots `state` have the same shape. Each is updated in slot
/// <name>Out.
void infer_update(shape_inference& s, names state) {
  check_gradient(s);
  update(s, "Param", "ParamOut");
  for (auto slot : state)
    update(s, slot, std::string{slot} + "Out");
}

void update_power(shape_inference& s, std::string_view slot) {
  check_scalar(s, slot);
  s.output(std::string{slot} + "Out", s.dims(slot), s.type(slot));
}

void infer_sgd(shape_inference& s) {
  infer_update(s, {});
}

void infer_velocity(shape_inference& s) {
  infer_update(s, {"Velocity"});
}

void infer_dgc_momentum(shape_inference& s) {
  infer_velocity(s);
  check_scalar(s, "current_step");
  check_scalar(s, "nranks");
  s.output("Grad_out", s.dims("Grad"), s.type("Grad"));
}

void infer_lars_momentum(shape_inference& s) {
  for (std::size_t i = 0; i < s.num_inputs("Param"); ++i) {
    for (auto slot : {"Grad", "Velocity", "LearningRate"})
      s.check(s.num_inputs(slot) == s.num_inputs("Param"), "Param",
              std::string{"as many as variables in "} + slot);
    check_gradient(s, i);
    update(s, "Param", "ParamOut", i);
    update(s, "Velocity", "VelocityOut", i);
  }
}

void infer_moment(shape_inference& s) {
  infer_update(s, {"Moment"});
}

void infer_adadelta(shape_inference& s) {
  infer_update(s, {"AvgSquaredGrad", "AvgSquaredUpdate"});
}

void infer_adamax(shape_inference& s) {
  infer_update(s, {"Moment", "InfNorm"});
  check_scalar(s, "Beta1Pow");
}

void infer_rmsprop(shape_inference& s) {
  infer_update(s, {"MeanSquare", "Moment", "MeanGrad"});
}

void infer_ftrl(shape_inference& s) {
  infer_update(s, {});
  update(s, "SquaredAccumulator", "SquaredAccumOut");
  update(s, "LinearAccumulator", "LinearAccumOut");
}

void infer_adam(shape_inference& s) {
  infer_update(s, {"Moment1", "Moment2"});
  update_power(s, "Beta1Pow");
  update_power(s, "Beta2Pow");
  for (auto slot :
       {"SkipUpdate", "Beta1Tensor", "Beta2Tensor", "EpsilonTensor"})
    check_scalar(s, slot);
}

/// An op that reads Param, Grad and LearningRate and updates Param and its
/// state. `state` lists pairs of input and output slot.
op_schema optimizer(
  std::string_view type, void (*infer)(shape_inference&),
  std::vector<std::pair<std::string_view, std::string_view>> state = {}) {
  op_schema schema{.type = type,
                   .inputs = {{"Param"}, {"Grad"}, {"LearningRate"}},
                   .outputs = {{"ParamOut"}},
                   .infer = infer};
  for (auto [in, out] : state) {
    schema.inputs.push_back({in});
    schema.outputs.push_back({out});
  }
  return schema;
}

op_schema adam_like(std::string_view type) {
  auto schema = optimizer(type, infer_adam,
                          {{"Moment1", "Moment1Out"},
                           {"Moment2", "Moment2Out"},
                           {"Beta1Pow", "Beta1PowOut"},
                           {"Beta2Pow", "Beta2PowOut"}});
  for (auto slot :
       {"SkipUpdate", "Beta1Tensor", "Beta2Tensor", "EpsilonTensor"})
    schema.inputs.push_back({slot, slot_arity::optional});
  return schema;
}

op_schema rmsprop() {
  auto schema =
    optimizer("rmsprop", infer_rmsprop,
              {{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}});
  schema.inputs.push_back({"MeanGrad", slot_arity::optional});
  schema.outputs.push_back({"MeanGradOut", slot_arity::optional});
  return schema;
}

op_schema adamax() {
  auto schema = optimizer("adamax", infer_adamax,
                          {{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}});
  schema.inputs.push_back({"Beta1Pow"});
  return schema;
}

op_schema dgc_momentum() {
  auto schema = optimizer("dgc_momentum", infer_dgc_momentum,
                          {{"Velocity", "VelocityOut"}});
  schema.inputs.push_back({"current_step"});
  schema.inputs.push_back({"nranks"});
  schema.outputs.push_back({"Grad_out"});
  return schema;
}

op_schema lars_momentum() {
  auto schema = optimizer("lars_momentum", infer_lars_momentum,
                          {{"Velocity", "VelocityOut"}});
  for (auto* slots : {&schema.inputs, &schema.outputs})
    for (auto& slot : *slots)
      slot.arity = slot_arity::many;
  return schema;
}

} // namespace

void add_optimizers(op_schema_table& table) {
  add(table,
      {optimizer("sgd", infer_sgd),
       optimizer("momentum", infer_velocity, {{"Velocity", "VelocityOut"}}),
       dgc_momentum(), lars_momentum(), adam_like("adam"), adam_like("adamw"),
       adam_like("lamb"), adamax(),
       optimizer("adagrad", infer_moment, {{"Moment", "MomentOut"}}),
       optimizer("decayed_adagrad", infer_moment, {{"Moment", "MomentOut"}}),
       optimizer("adadelta", infer_adadelta,
                 {{"AvgSquaredGrad", "AvgSquaredGradOut"},
                  {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}),
       rmsprop(),
       optimizer("ftrl", infer_ftrl,
                 {{"SquaredAccumulator", "SquaredAccumOut"},
                  {"LinearAccumulator", "LinearAccumOut"}})});
}

} // namespace troupe::graph::schemas
