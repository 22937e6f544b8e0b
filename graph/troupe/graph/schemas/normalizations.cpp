// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <utility>

namespace troupe::graph::schemas {

namespace {

void check_vector(shape_inference& s, std::string_view slot,
                  std::int64_t extent, std::string_view of) {
  if (s.has_input(slot))
    s.check(s.dims(slot).rank() == 1 && fits(s.dims(slot)[0], extent), slot,
            "[" + std::to_string(extent) + "], one value for each "
              + std::string{of} + " of X " + to_string(s.dims("X")));
}

/// X [batch, channels] or [batch, channels, height, width]; the others
/// [channels].
void infer_batch_norm(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() == 2 || x.rank() == 4, "X",
          "[batch, channels] or [batch, channels, height, width]");
  for (auto slot : {"Scale", "Bias", "Mean", "Variance"})
    check_vector(s, slot, x[1], "channel");
  s.output("Y", x, s.type("X"));
  for (auto slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"})
    s.output(slot, {x[1]}, dtype::float32);
}

/// Statistics of the batch are read as the forward pass saved them; fixed ones
/// from Mean and Variance.
std::vector<op_desc> batch_norm_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  op_desc op;
  op.type = "batch_norm_grad";
  op.attributes = forward.attributes;
  for (auto slot : {"X", "Scale", "Bias"})
    op.set_input(slot, forward.input(slot));
  const bool fixed = forward.attributes.get_bool("use_global_stats", false);
  for (auto slot : {"Mean", "Variance"})
    if (fixed)
      op.set_input(slot, forward.input(slot));
  for (auto slot : {"SavedMean", "SavedVariance"})
    if (!fixed)
      op.set_input(slot, forward.output(slot));
  op.set_input("Y@GRAD", {gradient_name(forward.only_output("Y"))});
  for (auto slot : {"X", "Scale", "Bias"})
    if (const auto& name = forward.only_input(slot); context.wanted(name))
      op.set_output(gradient_name(slot), {gradient_name(name)});
  return {std::move(op)};
}

/// X seen as [rows, columns] split at begin_norm_axis; Scale and Bias
/// [columns], Mean and Variance [rows].
void infer_layer_norm(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto begin = s.attributes().get_int("begin_norm_axis", 1);
  s.check_attribute(begin > 0 && begin < static_cast<std::int64_t>(x.rank()),
                    "begin_norm_axis",
                    "an axis of X " + to_string(x) + " after the first");
  const auto split = static_cast<std::size_t>(begin);
  const auto columns = product(x, split, x.rank());
  check_vector(s, "Scale", columns, "column");
  check_vector(s, "Bias", columns, "column");
  s.output("Y", x, s.type("X"));
  s.output("Mean", {product(x, 0, split)}, dtype::float32);
  s.output("Variance", {product(x, 0, split)}, dtype::float32);
}

void infer_dropout(shape_inference& s) {
  const auto p = s.attributes().get_float("dropout_prob", 0.5f);
  s.check_attribute(p >= 0 && p <= 1, "dropout_prob", "in [0, 1]");
  same_as_x(s);
  s.output("Mask", s.dims("X"), dtype::uint8);
}

op_schema batch_norm() {
  return {.type = "batch_norm",
          .inputs = {{"X"}, {"Scale"}, {"Bias"}, {"Mean"}, {"Variance"}},
          .outputs = {{"Y"},
                      {"MeanOut"},
                      {"VarianceOut"},
                      {"SavedMean"},
                      {"SavedVariance"}},
          .infer = infer_batch_norm,
          .gradient = {.groups = {{"X", "Scale", "Bias"}},
                       .reads = {},
                       .outputs = {"Y"},
                       .make = batch_norm_gradient},
          .is_test = "is_test"};
}

op_schema layer_norm() {
  return {.type = "layer_norm",
          .inputs = {{"X"},
                     {"Scale", slot_arity::optional},
                     {"Bias", slot_arity::optional}},
          .outputs = {{"Y"}, {"Mean"}, {"Variance"}},
          .infer = infer_layer_norm,
          .gradient = {.groups = {{"X", "Scale", "Bias"}},
                       .reads = {"X", "Scale", "Bias", "Mean", "Variance"},
                       .outputs = {"Y"}}};
}

} // namespace

void add_normalizations(op_schema_table& table) {
  add(table,
      {batch_norm(),
       layer_norm(),
       {.type = "dropout",
        .inputs = {{"X"}},
        .outputs = {{"Out"}, {"Mask", slot_arity::optional}},
        .infer = infer_dropout,
        .gradient = {.groups = {{"X"}}, .reads = {"Mask"}, .outputs = {"Out"}},
        .is_test = "is_test"}});
}

} // namespace troupe::graph::schemas
