// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <algorithm>

namespace troupe::graph::schemas {

namespace {

/// Ops without inputs whose shape and dtype are attributes.
void infer_from_attributes(shape_inference& s) {
  const auto dims = s.attributes().get_ints("shape", {});
  s.check_attribute(std::ranges::none_of(dims, [](auto d) { return d < 0; }),
                    "shape", "known in all extents");
  const auto type = s.attributes().get_int("dtype", 5);
  s.output("Out", to_shape(dims), dtype_of_number(type));
}

/// Extents that come in a tensor, or in one each, are unknown before a run;
/// how many there are is known.
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

void infer_fill(shape_inference& s) {
  if (!s.has_input("ShapeTensor") && !s.has_input("ShapeTensorList"))
    return infer_from_attributes(s);
  const auto type = s.attributes().get_int("dtype", 5);
  s.output("Out", to_shape(extents_from_tensors(s)), dtype_of_number(type));
}

void infer_like(shape_inference& s) {
  const auto type = s.attributes().get_int("dtype", -1);
  s.output("Out", s.dims("X"), type < 0 ? s.type("X") : dtype_of_number(type));
}

void infer_batch_size_like(shape_inference& s) {
  auto dims = s.attributes().get_ints("shape", {});
  const auto to = s.axis(
    "output_dim_idx", s.attributes().get_int("output_dim_idx", 0), dims.size());
  const auto& input = s.dims("Input");
  const auto from = s.axis(
    "input_dim_idx", s.attributes().get_int("input_dim_idx", 0), input.rank());
  dims[to] = from == 0 && s.input("Input").lod_level > 0 ? -1 : input[from];
  s.output("Out", to_shape(dims),
           dtype_of_number(s.attributes().get_int("dtype", 5)));
}

op_schema initializer(std::string_view type) {
  return {.type = type,
          .inputs = {},
          .outputs = {{"Out"}},
          .infer = infer_from_attributes};
}

} // namespace

void add_initializers(op_schema_table& table) {
  constexpr auto optional = slot_arity::optional;
  add(table, {{.type = "fill_constant",
               .inputs = {{"ShapeTensor", optional},
                          {"ShapeTensorList", slot_arity::any},
                          {"ValueTensor", optional}},
               .outputs = {{"Out"}},
               .infer = infer_fill},
              {.type = "fill_any_like",
               .inputs = {{"X"}},
               .outputs = {{"Out"}},
               .infer = infer_like},
              {.type = "fill_zeros_like",
               .inputs = {{"X"}},
               .outputs = {{"Out"}},
               .infer = same_as_x},
              {.type = "fill_constant_batch_size_like",
               .inputs = {{"Input"}},
               .outputs = {{"Out"}},
               .infer = infer_batch_size_like},
              initializer("uniform_random"),
              initializer("gaussian_random"),
              initializer("truncated_gaussian_random")});
}

} // namespace troupe::graph::schemas
