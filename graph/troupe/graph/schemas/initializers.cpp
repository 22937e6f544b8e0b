// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <algorithm>

namespace troupe::graph::schemas {

namespace {

dtype wanted(const shape_inference& s, dtype otherwise) {
  const auto number = s.attributes().get_int("dtype", -1);
  return number < 0 ? otherwise : dtype_of_number(number);
}

void infer_from_shape(shape_inference& s, dtype otherwise) {
  const auto dims = s.attributes().get_ints("shape", {});
  s.check_attribute(std::ranges::none_of(dims, [](auto d) { return d < 0; }),
                    "shape", "known in all extents");
  s.output("Out", to_shape(dims), wanted(s, otherwise));
}

void infer_constant(shape_inference& s) {
  infer_from_shape(s, dtype::float32);
}

/// Extents given by one tensor or by a list of tensors. Before a run, only
/// their number is known, unless attribute `shape` has that many extents.
std::vector<std::int64_t> extents_from_tensors(const shape_inference& s) {
  const auto count =
    s.has_input("ShapeTensor")
      ? s.dims("ShapeTensor").numel()
      : static_cast<std::int64_t>(s.num_inputs("ShapeTensorList"));
  auto known = s.attributes().get_ints("shape", {});
  if (static_cast<std::int64_t>(known.size()) != count)
    known.assign(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)),
                 -1);
  return known;
}

void infer_filled(shape_inference& s, dtype otherwise) {
  if (!s.has_input("ShapeTensor") && !s.has_input("ShapeTensorList"))
    return infer_from_shape(s, otherwise);
  s.output("Out", to_shape(extents_from_tensors(s)), wanted(s, otherwise));
}

void infer_floats(shape_inference& s) {
  infer_filled(s, dtype::float32);
}

void infer_like(shape_inference& s) {
  s.output("Out", s.dims("X"), wanted(s, s.type("X")));
}

void infer_batch_size_like(shape_inference& s) {
  auto dims = s.attributes().get_ints("shape", {});
  const auto to = s.axis(
    "output_dim_idx", s.attributes().get_int("output_dim_idx", 0), dims.size());
  const auto& input = s.dims("Input");
  const auto from = s.axis(
    "input_dim_idx", s.attributes().get_int("input_dim_idx", 0), input.rank());
  dims[to] = from == 0 && s.input("Input").lod_level > 0 ? -1 : input[from];
  s.output("Out", to_shape(dims), wanted(s, dtype::float32));
}

void infer_randint(shape_inference& s) {
  const auto& a = s.attributes();
  s.check_attribute(a.get_int("low", 0) < a.get_int("high", 0), "low",
                    "less than high");
  infer_filled(s, dtype::int64);
}

/// An op whose extents are given by attribute `shape` or by tensors.
op_schema filled(std::string_view type, void (*infer)(shape_inference&),
                 std::vector<slot_schema> more = {}) {
  op_schema schema{.type = type,
                   .inputs = {{"ShapeTensor", slot_arity::optional},
                              {"ShapeTensorList", slot_arity::any}},
                   .outputs = {{"Out"}},
                   .infer = infer};
  schema.inputs.insert(schema.inputs.end(), more.begin(), more.end());
  return schema;
}

/// Draws numbers; an axis may hold the samples of the batch.
op_schema drawn(op_schema schema) {
  schema.uses_batch = true;
  return schema;
}

op_schema like_batch(std::string_view type) {
  return {.type = type,
          .inputs = {{"Input"}},
          .outputs = {{"Out"}},
          .infer = infer_batch_size_like};
}

} // namespace

void add_initializers(op_schema_table& table) {
  add(table, {filled("fill_constant", infer_floats,
                     {{"ValueTensor", slot_arity::optional}}),
              drawn(filled("uniform_random", infer_floats)),
              drawn(filled("gaussian_random", infer_floats)),
              drawn(filled("truncated_gaussian_random", infer_floats)),
              drawn(filled("randint", infer_randint)),
              like_batch("fill_constant_batch_size_like"),
              drawn(like_batch("uniform_random_batch_size_like")),
              drawn(like_batch("gaussian_random_batch_size_like")),
              plain_schema("fill_any_like", {"X"}, infer_like),
              plain_schema("fill_zeros_like", {"X"}, same_as_x),
              plain_schema("assign_value", {}, infer_constant)});
}

} // namespace troupe::graph::schemas
