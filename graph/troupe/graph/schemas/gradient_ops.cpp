// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

void infer_squared_l2_norm(shape_inference& s) {
  s.output("Out", {1}, s.type("X"));
}

/// The number of rows is known only at run time.
void infer_row_values(shape_inference& s) {
  auto dims = s.dims("X");
  s.check(dims.rank() > 0, "X", "of rank 1 at least");
  dims[0] = -1;
  s.output("Out", dims, s.type("X"));
}

void same_as_each_x(shape_inference& s) {
  s.check(s.num_outputs("Out") == s.num_inputs("X"), "X",
          "as many as outputs Out");
  for (std::size_t i = 0; i < s.num_inputs("X"); ++i)
    s.output("Out", s.dims("X", i), s.type("X", i), i);
}

void infer_check_finite_and_unscale(shape_inference& s) {
  same_as_each_x(s);
  s.output("FoundInfinite", {1}, dtype::boolean);
}

void infer_update_loss_scaling(shape_inference& s) {
  same_as_each_x(s);
  s.output("LossScaling", {1}, s.type("PrevLossScaling"));
  s.output("OutGoodSteps", {1}, dtype::int32);
  s.output("OutBadSteps", {1}, dtype::int32);
}

op_schema mapping(std::string_view type, void (*infer)(shape_inference&)) {
  return {
    .type = type, .inputs = {{"X"}}, .outputs = {{"Out"}}, .infer = infer};
}

op_schema squared_l2_norm() {
  auto schema = mapping("squared_l2_norm", infer_squared_l2_norm);
  schema.gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}};
  return schema;
}

/// One result for a whole tensor or for all rows of a sparse gradient.
void infer_overflow(shape_inference& s) {
  s.output("Out", {1}, dtype::boolean);
}

op_schema dgc_clip_by_norm() {
  auto schema = mapping("dgc_clip_by_norm", same_as_x);
  schema.inputs.push_back({"current_step"});
  return schema;
}

} // namespace

void add_gradient_ops(op_schema_table& table) {
  add(table, {mapping("clip_by_norm", same_as_x),
              dgc_clip_by_norm(),
              squared_l2_norm(),
              mapping("isfinite", infer_overflow),
              mapping("isinf", infer_overflow),
              mapping("isnan", infer_overflow),
              mapping("merge_selected_rows", same_as_x),
              mapping("get_tensor_from_selected_rows", infer_row_values),
              {.type = "check_finite_and_unscale",
               .inputs = {{"X", slot_arity::many}, {"Scale"}},
               .outputs = {{"Out", slot_arity::many}, {"FoundInfinite"}},
               .infer = infer_check_finite_and_unscale},
              {.type = "update_loss_scaling",
               .inputs = {{"X", slot_arity::many},
                          {"FoundInfinite"},
                          {"PrevLossScaling"},
                          {"InGoodSteps"},
                          {"InBadSteps"},
                          {"StopUpdate", slot_arity::optional}},
               .outputs = {{"Out", slot_arity::many},
                           {"LossScaling"},
                           {"OutGoodSteps"},
                           {"OutBadSteps"}},
               .infer = infer_update_loss_scaling}});
}

} // namespace troupe::graph::schemas
