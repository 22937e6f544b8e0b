// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <troupe/graph/dtype_number.hpp>

namespace troupe::graph::schemas {

namespace {

/// The number of elements is known only at run time.
void infer_range(shape_inference& s) {
  s.output("Out", {-1}, s.type("Start"));
}

void infer_shape(shape_inference& s) {
  s.output("Out", {static_cast<std::int64_t>(s.dims("Input").rank())},
           dtype::int32);
}

void infer_size(shape_inference& s) {
  s.output("Out", {}, dtype::int64);
}

/// X has any shape, and Out is [X..., depth]. one_hot (not _v2) drops the last
/// axis of X [..., 1].
void infer_lines(shape_inference& s, bool drops_last) {
  const auto& x = s.dims("X");
  s.check_index_type("X");
  std::vector<std::int64_t> out{x.begin(), x.end()};
  if (drops_last) {
    s.check(!out.empty() && fits(out.back(), 1), "X", "[..., 1]");
    out.pop_back();
  }
  out.push_back(
    s.has_input("depth_tensor") ? -1 : s.attributes().get_int("depth", -1));
  s.output("Out", to_shape(out),
           dtype_of_number(s.attributes().get_int("dtype", 5)));
}

op_schema one_hot(std::string_view type, void (*infer)(shape_inference&)) {
  auto schema = plain_schema(type, {"X"}, infer);
  schema.inputs.push_back({"depth_tensor", slot_arity::optional});
  return schema;
}

} // namespace

void add_ranges(op_schema_table& table) {
  add(
    table,
    {plain_schema("range", {"Start", "End", "Step"}, infer_range),
     plain_schema("shape", {"Input"}, infer_shape),
     plain_schema("size", {"Input"}, infer_size),
     one_hot("one_hot", [](shape_inference& s) { infer_lines(s, true); }),
     one_hot("one_hot_v2", [](shape_inference& s) { infer_lines(s, false); })});
}

} // namespace troupe::graph::schemas
