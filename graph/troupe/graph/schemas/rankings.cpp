// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <troupe/graph/dtype_number.hpp>

namespace troupe::graph::schemas {

namespace {

std::size_t ranked_axis(const shape_inference& s) {
  const auto rank = s.dims("X").rank();
  return s.axis("axis", s.attributes().get_int("axis", -1),
                rank == 0 ? 1 : rank);
}

void infer_top_k(shape_inference& s) {
  auto dims = s.dims("X");
  const auto axis = ranked_axis(s);
  const auto k = s.attributes().get_int("k", 1);
  if (s.has_input("K"))
    dims[axis] = -1;
  else if (dims.rank() > 0) {
    s.check_attribute(k > 0, "k", "positive");
    s.check(dims[axis] < 0 || k <= dims[axis], "X",
            "at least " + std::to_string(k) + " long along axis "
              + std::to_string(axis));
    dims[axis] = k;
  }
  s.output("Out", dims, s.type("X"));
  s.output("Indices", dims, dtype::int64);
}

void infer_argsort(shape_inference& s) {
  ranked_axis(s);
  same_as_x(s);
  s.output("Indices", s.dims("X"), dtype::int64);
}

void infer_extremum(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& a = s.attributes();
  const bool keep = a.get_bool("keepdims", false);
  const bool flatten = a.get_bool("flatten", false);
  const auto axis = flatten ? 0 : ranked_axis(s);
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!flatten && i != axis)
      dims.push_back(x[i]);
    else if (keep)
      dims.push_back(1);
  const auto type = a.get_int("dtype", -1);
  s.output("Out", to_shape(dims),
           type < 0 ? dtype::int64 : dtype_of_number(type));
}

op_schema ranking(std::string_view type, void (*infer)(shape_inference&),
                  std::vector<slot_schema> inputs) {
  return {.type = type,
          .inputs = std::move(inputs),
          .outputs = {{"Out"}, {"Indices"}},
          .infer = infer,
          .gradient = {
            .groups = {{"X"}}, .reads = {"X", "Indices"}, .outputs = {"Out"}}};
}

} // namespace

void add_rankings(op_schema_table& table) {
  add(table,
      {ranking("top_k", infer_top_k, {{"X"}, {"K", slot_arity::optional}}),
       ranking("top_k_v2", infer_top_k, {{"X"}, {"K", slot_arity::optional}}),
       ranking("argsort", infer_argsort, {{"X"}}),
       plain_schema("arg_max", {"X"}, infer_extremum),
       plain_schema("arg_min", {"X"}, infer_extremum)});
}

} // namespace troupe::graph::schemas
