// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

/// The shape of `dims` with extent 1 at `axis`.
shape line_shape(shape dims, std::size_t axis) {
  dims[axis] = 1;
  return dims;
}

/// The shape of `dims` without `axis`.
shape without(const shape& dims, std::size_t axis) {
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    if (i != axis)
      kept.push_back(dims[i]);
  return to_shape(kept);
}

/// Labels are class indices, one per line of Logits along `axis`, or
/// distributions (soft_label).
void infer_softmax_with_cross_entropy(shape_inference& s) {
  const auto& logits = s.dims("Logits");
  const auto& label = s.dims("Label");
  const auto axis =
    s.axis("axis", s.attributes().get_int("axis", -1), logits.rank());
  const auto lines = line_shape(logits, axis);
  if (s.attributes().get_bool("soft_label", false)) {
    s.check(fits(label, logits), "Label",
            "of the shape of Logits " + to_string(logits) + " with soft_label");
  } else {
    s.check_index_type("Label");
    s.check(fits(label, lines) || fits(label, without(logits, axis)), "Label",
            to_string(lines) + ", a class for each line of Logits "
              + to_string(logits));
  }
  s.output("Softmax", logits, s.type("Logits"));
  s.output("Loss", lines, s.type("Logits"));
}

/// X [..., classes] holds probabilities. Labels refer to the last axis.
void infer_cross_entropy(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& label = s.dims("Label");
  s.check(x.rank() > 0, "X", "of rank 1 at least");
  const auto lines = line_shape(x, x.rank() - 1);
  if (s.attributes().get_bool("soft_label", false)) {
    s.check(fits(label, x), "Label",
            "of the shape of X " + to_string(x) + " with soft_label");
  } else {
    s.check_index_type("Label");
    s.check(fits(label, lines) || fits(label, without(x, x.rank() - 1)),
            "Label",
            to_string(lines) + ", a class for each line of X " + to_string(x));
  }
  s.output("Y", lines, s.type("X"));
}

void infer_cross_entropy2(shape_inference& s) {
  infer_cross_entropy(s);
  const auto& x = s.dims("X");
  std::vector<std::int64_t> saved{0};
  saved.insert(saved.end(), x.begin(), x.end());
  s.output("XShape", to_shape(saved), s.type("X"));
  s.output("MatchX", line_shape(x, x.rank() - 1), s.type("X"));
}

/// One loss per element of slot `x`. Labels have the same shape.
void infer_pointwise(shape_inference& s, std::string_view x,
                     std::string_view label, std::string_view out) {
  s.check(fits(s.dims(label), s.dims(x)), label,
          "of the shape of " + std::string{x} + " " + to_string(s.dims(x)));
  s.output(out, s.dims(x), s.type(x));
}

void infer_log_loss(shape_inference& s) {
  infer_pointwise(s, "Predicted", "Labels", "Loss");
}

void infer_hinge_loss(shape_inference& s) {
  infer_pointwise(s, "Logits", "Labels", "Loss");
}

void infer_binary_loss(shape_inference& s) {
  infer_pointwise(s, "X", "Label", "Out");
}

void infer_huber_loss(shape_inference& s) {
  infer_pointwise(s, "X", "Y", "Out");
  s.output("Residual", s.dims("X"), s.type("X"));
}

void infer_kldiv_loss(shape_inference& s) {
  infer_pointwise(s, "X", "Target", "Loss");
  if (s.attributes().get_string("reduction", "mean") != "none")
    s.output("Loss", {}, s.type("X"));
}

/// A loss of the prediction in slot `x`. Labels have no gradient.
op_schema loss_of(std::string_view type, std::string_view x,
                  std::string_view label, std::string_view out,
                  void (*infer)(shape_inference&)) {
  return {.type = type,
          .inputs = {{x}, {label}},
          .outputs = {{out}},
          .infer = infer,
          .gradient = {.groups = {{x}}, .reads = {x, label}, .outputs = {out}}};
}

op_schema cross_entropy2_schema() {
  auto schema =
    loss_of("cross_entropy2", "X", "Label", "Y", infer_cross_entropy2);
  schema.outputs = {{"Y"}, {"XShape"}, {"MatchX"}};
  schema.gradient.reads = {"Label", "MatchX", "XShape"};
  schema.gradient.make = [](const gradient_context& context) {
    const auto& forward = context.forward;
    op_desc op;
    op.type = "cross_entropy_grad2";
    op.attributes = forward.attributes;
    op.set_input("Label", forward.input("Label"));
    op.set_input("MatchX", forward.output("MatchX"));
    op.set_input("XShape", forward.output("XShape"));
    op.set_input("Y@GRAD", {gradient_name(forward.only_output("Y"))});
    op.set_output("X@GRAD", {gradient_name(forward.only_input("X"))});
    return std::vector<op_desc>{op};
  };
  return schema;
}

op_schema huber_loss_schema() {
  return {.type = "huber_loss",
          .inputs = {{"X"}, {"Y"}},
          .outputs = {{"Out"}, {"Residual"}},
          .infer = infer_huber_loss,
          .gradient = {.groups = {{"X"}, {"Y"}},
                       .reads = {"Residual"},
                       .outputs = {"Out"}}};
}

void infer_smooth_l1_loss(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() >= 2, "X", "of rank 2 at least");
  infer_pointwise(s, "X", "Y", "Diff");
  s.output("Out", {x[0], 1}, s.type("X"));
}

op_schema smooth_l1_loss_schema() {
  return {.type = "smooth_l1_loss",
          .inputs = {{"X"},
                     {"Y"},
                     {"InsideWeight", slot_arity::optional},
                     {"OutsideWeight", slot_arity::optional}},
          .outputs = {{"Diff"}, {"Out"}},
          .infer = infer_smooth_l1_loss,
          .gradient = {.groups = {{"X"}, {"Y"}},
                       .reads = {"InsideWeight", "OutsideWeight", "Diff"},
                       .outputs = {"Out"}}};
}

op_schema label_smooth_schema() {
  auto schema = plain_schema("label_smooth", {"X"}, same_as_x);
  schema.inputs.push_back({"PriorDist", slot_arity::optional});
  schema.gradient = {.groups = {{"X"}}, .reads = {}, .outputs = {"Out"}};
  return schema;
}

/// Y has one row per row of X, or one row for all.
void infer_cos_sim(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& y = s.dims("Y");
  s.check(x.rank() >= 2, "X", "of rank 2 at least");
  auto one_row = x;
  one_row[0] = 1;
  s.check(fits(y, x) || fits(y, one_row), "Y",
          "of the shape of X " + to_string(x) + " or one row of it");
  s.output("Out", {x[0], 1}, s.type("X"));
  s.output("XNorm", {x[0], 1}, s.type("X"));
  s.output("YNorm", {y[0], 1}, s.type("X"));
}

op_schema cos_sim_schema() {
  return {.type = "cos_sim",
          .inputs = {{"X"}, {"Y"}},
          .outputs = {{"Out"}, {"XNorm"}, {"YNorm"}},
          .infer = infer_cos_sim,
          .gradient = {.groups = {{"X"}, {"Y"}},
                       .reads = {"X", "Y", "XNorm", "YNorm", "Out"},
                       .outputs = {"Out"}}};
}

op_schema sigmoid_loss_schema() {
  auto schema = loss_of("sigmoid_cross_entropy_with_logits", "X", "Label",
                        "Out", infer_binary_loss);
  schema.inputs.push_back({"pos_weight", slot_arity::optional});
  schema.gradient.reads.push_back("pos_weight");
  return schema;
}

void infer_accuracy(shape_inference& s) {
  const auto& indices = s.dims("Indices");
  s.check(indices.rank() == 2, "Indices", "of rank 2, [samples, k]");
  s.check_index_type("Label");
  const auto& label = s.dims("Label");
  s.check(label.rank() > 0 && fits(label[0], indices[0])
            && fits(product(label, 0, label.rank()), indices[0]),
          "Label", "a class for each sample of Indices " + to_string(indices));
  s.output("Accuracy", {}, dtype::float32);
  s.output("Correct", {}, dtype::int32);
  s.output("Total", {}, dtype::int32);
}

void infer_auc(shape_inference& s) {
  s.check(s.dims("Predict").rank() == 2, "Predict", "of rank 2");
  s.check_index_type("Label");
  const auto buckets = s.attributes().get_int("num_thresholds", 4095) + 1;
  const auto window = s.attributes().get_int("slide_steps", 1);
  const auto statistics =
    window > 0 ? shape{(1 + window) * buckets + 1} : shape{1, buckets};
  s.output("AUC", {}, dtype::float64);
  s.output("StatPosOut", statistics, dtype::int64);
  s.output("StatNegOut", statistics, dtype::int64);
}

op_schema auc_schema() {
  return {.type = "auc",
          .inputs = {{"Predict"},
                     {"Label"},
                     {"StatPos"},
                     {"StatNeg"},
                     {"InsTagWeight", slot_arity::optional}},
          .outputs = {{"AUC"}, {"StatPosOut"}, {"StatNegOut"}},
          .infer = infer_auc};
}

} // namespace

void add_losses(op_schema_table& table) {
  add(table,
      {loss_of("cross_entropy", "X", "Label", "Y", infer_cross_entropy),
       cross_entropy2_schema(), huber_loss_schema(), smooth_l1_loss_schema(),
       label_smooth_schema(), cos_sim_schema(), sigmoid_loss_schema(),
       auc_schema(),
       loss_of("log_loss", "Predicted", "Labels", "Loss", infer_log_loss),
       loss_of("hinge_loss", "Logits", "Labels", "Loss", infer_hinge_loss),
       loss_of("bce_loss", "X", "Label", "Out", infer_binary_loss),
       loss_of("kldiv_loss", "X", "Target", "Loss", infer_kldiv_loss)});
  add(table, {{.type = "softmax_with_cross_entropy",
               .inputs = {{"Logits"}, {"Label"}},
               .outputs = {{"Softmax", slot_arity::optional}, {"Loss"}},
               .infer = infer_softmax_with_cross_entropy,
               .gradient = {.groups = {{"Logits"}},
                            .reads = {"Label", "Softmax"},
                            .outputs = {"Loss"}}},
              {.type = "accuracy",
               .inputs = {{"Out"}, {"Indices"}, {"Label"}},
               .outputs = {{"Accuracy"}, {"Correct"}, {"Total"}},
               .infer = infer_accuracy}});
}

} // namespace troupe::graph::schemas
