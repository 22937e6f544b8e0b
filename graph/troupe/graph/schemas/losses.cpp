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

/// Labels are classes, one per line of Logits, or distributions (soft_label).
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

} // namespace

void add_losses(op_schema_table& table) {
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
