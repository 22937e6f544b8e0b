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

std::int64_t channels_of(const shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() >= 2, "X", "[batch, channels, ...]");
  const bool last = s.attributes().get_string("data_layout", "NCHW") == "NHWC";
  return x[last ? x.rank() - 1 : 1];
}

/// X is [batch, channels, ...] or [batch, ..., channels], all other variables
/// are [channels].
void infer_batch_norm(shape_inference& s) {
  const auto channels = channels_of(s);
  for (auto slot : {"Scale", "Bias", "Mean", "Variance"})
    check_vector(s, slot, channels, "channel");
  s.output("Y", s.dims("X"), s.type("X"));
  for (auto slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"})
    s.output(slot, {channels}, dtype::float32);
  s.output("ReserveSpace", {0}, dtype::float32);
}

/// One mean and variance per sample and group of channels: Mean and Variance
/// are [batch, groups].
void infer_group_norm(shape_inference& s) {
  const auto channels = channels_of(s);
  const auto groups = s.attributes().get_int("groups", 1);
  s.check_attribute(groups > 0 && (channels < 0 || channels % groups == 0),
                    "groups", "a divisor of the number of channels");
  check_vector(s, "Scale", channels, "channel");
  check_vector(s, "Bias", channels, "channel");
  s.output("Y", s.dims("X"), s.type("X"));
  s.output("Mean", {s.dims("X")[0], groups}, dtype::float32);
  s.output("Variance", {s.dims("X")[0], groups}, dtype::float32);
}

/// One mean and variance per sample and channel: [batch * channels].
void infer_instance_norm(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto channels = channels_of(s);
  check_vector(s, "Scale", channels, "channel");
  check_vector(s, "Bias", channels, "channel");
  s.output("Y", x, s.type("X"));
  s.output("SavedMean", {product(x, 0, 2)}, dtype::float32);
  s.output("SavedVariance", {product(x, 0, 2)}, dtype::float32);
}

void infer_norm(shape_inference& s) {
  auto dims = s.dims("X");
  same_as_x(s);
  dims[s.axis("axis", s.attributes().get_int("axis", -1), dims.rank())] = 1;
  s.output("Norm", dims, s.type("X"));
}

/// The gradient op reads the statistics of the batch as saved by the forward
/// pass. Fixed statistics are read from Mean and Variance.
std::vector<op_desc> batch_norm_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  op_desc op;
  op.type = "batch_norm_grad";
  op.attributes = forward.attributes;
  for (auto slot : {"X", "Scale", "Bias"})
    if (!forward.input(slot).empty())
      op.set_input(slot, forward.input(slot));
  const bool fixed = forward.attributes.get_bool("use_global_stats", false)
                     || forward.attributes.get_bool("is_test", false);
  for (auto slot : {"Mean", "Variance"})
    if (fixed)
      op.set_input(slot, forward.input(slot));
  for (auto slot : {"SavedMean", "SavedVariance"})
    if (!fixed)
      op.set_input(slot, forward.output(slot));
  op.set_input("Y@GRAD", {gradient_name(forward.only_output("Y"))});
  for (auto slot : {"X", "Scale", "Bias"})
    for (const auto& name : forward.input(slot))
      if (context.wanted(name))
        op.set_output(gradient_name(slot), {gradient_name(name)});
  return {std::move(op)};
}

/// X is treated as [rows, columns], split at begin_norm_axis. Scale and Bias
/// are [columns]. Mean and Variance have the extents of X before the axis.
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
  const shape rows(x.dims().first(split));
  s.output("Mean", rows, dtype::float32);
  s.output("Variance", rows, dtype::float32);
}

void infer_dropout(shape_inference& s) {
  const auto p = s.attributes().get_float("dropout_prob", 0.5f);
  s.check_attribute(p >= 0 && p <= 1, "dropout_prob", "in [0, 1]");
  same_as_x(s);
  s.output("Mask", s.dims("X"), dtype::uint8);
}

op_schema batch_norm() {
  return {.type = "batch_norm",
          .inputs = {{"X"},
                     {"Scale", slot_arity::optional},
                     {"Bias", slot_arity::optional},
                     {"Mean"},
                     {"Variance"},
                     {"MomentumTensor", slot_arity::optional}},
          .outputs = {{"Y"},
                      {"MeanOut"},
                      {"VarianceOut"},
                      {"SavedMean"},
                      {"SavedVariance"},
                      {"ReserveSpace", slot_arity::optional}},
          .infer = infer_batch_norm,
          .gradient = {.groups = {{"X", "Scale", "Bias"}},
                       .reads = {},
                       .outputs = {"Y"},
                       .make = batch_norm_gradient},
          .is_test = "is_test"};
}

/// An op with optional Scale and Bias that saves its statistics.
op_schema scaled_norm(std::string_view type, void (*infer)(shape_inference&),
                      std::string_view mean, std::string_view variance,
                      std::vector<std::string_view> reads) {
  return {.type = type,
          .inputs = {{"X"},
                     {"Scale", slot_arity::optional},
                     {"Bias", slot_arity::optional}},
          .outputs = {{"Y"}, {mean}, {variance}},
          .infer = infer,
          .gradient = {.groups = {{"X", "Scale", "Bias"}},
                       .reads = std::move(reads),
                       .outputs = {"Y"}}};
}

op_schema prelu() {
  auto schema = plain_schema("prelu", {"X", "Alpha"}, same_as_x);
  schema.gradient = {
    .groups = {{"X"}, {"Alpha"}}, .reads = {"X", "Alpha"}, .outputs = {"Out"}};
  return schema;
}

} // namespace

void add_normalizations(op_schema_table& table) {
  add(
    table,
    {batch_norm(),
     scaled_norm("layer_norm", infer_layer_norm, "Mean", "Variance",
                 {"X", "Scale", "Bias", "Mean", "Variance"}),
     scaled_norm("group_norm", infer_group_norm, "Mean", "Variance",
                 {"X", "Scale", "Bias", "Mean", "Variance"}),
     scaled_norm("instance_norm", infer_instance_norm, "SavedMean",
                 "SavedVariance", {"X", "Scale", "SavedMean", "SavedVariance"}),
     prelu(),
     {.type = "norm",
      .inputs = {{"X"}},
      .outputs = {{"Out"}, {"Norm", slot_arity::optional}},
      .infer = infer_norm,
      .gradient = {.groups = {{"X"}},
                   .reads = {"X", "Norm"},
                   .outputs = {"Out"}}},
     {.type = "dropout",
      .inputs = {{"X"}, {"Seed", slot_arity::optional}},
      .outputs = {{"Out"}, {"Mask", slot_arity::optional}},
      .infer = infer_dropout,
      .gradient = {.groups = {{"X"}}, .reads = {"Mask"}, .outputs = {"Out"}},
      .is_test = "is_test",
      .uses_batch = true}});
}

} // namespace troupe::graph::schemas
