// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

using extents = std::vector<std::int64_t>;

/// An Index of shape [] removes the axis. [n] and [n, 1] are lists of indices.
void select(shape_inference& s, std::int64_t axis, std::string_view attribute) {
  const auto& x = s.dims("X");
  const auto& index = s.dims("Index");
  s.check_index_type("Index");
  s.check(index.rank() < 2 || (index.rank() == 2 && fits(index[1], 1)), "Index",
          "[n] or [n, 1]");
  const auto at = s.axis(attribute, axis, x.rank());
  extents out{x.begin(), x.end()};
  if (index.rank() == 0)
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(at));
  else
    out[at] = index[0];
  s.output("Out", to_shape(out), s.type("X"));
}

void infer_gather(shape_inference& s) {
  if (s.has_input("Axis"))
    return s.output("Out", unknown_extents(s.dims("X").rank()), s.type("X"));
  select(s, s.attributes().get_int("axis", 0), "axis");
}

void infer_index_select(shape_inference& s) {
  select(s, s.attributes().get_int("dim", 0), "dim");
}

/// Extents of what Index [..., k] selects from `whole` by its first k axes.
extents named_extents(const shape_inference& s, const shape& whole) {
  const auto& index = s.dims("Index");
  s.check_index_type("Index");
  s.check(index.rank() > 0 && index.dim(-1) >= 0
            && index.dim(-1) <= static_cast<std::int64_t>(whole.rank()),
          "Index", "[..., k] with k axes of X " + to_string(whole));
  extents out{index.begin(), index.end() - 1};
  out.insert(out.end(), whole.begin() + index.dim(-1), whole.end());
  return out;
}

void infer_gather_nd(shape_inference& s) {
  s.output("Out", to_shape(named_extents(s, s.dims("X"))), s.type("X"));
}

void infer_scatter(shape_inference& s) {
  s.check_index_type("Ids");
  s.check(s.dims("X").rank() > 0, "X", "of rank 1 at least");
  same_as_x(s);
}

void infer_scatter_nd_add(shape_inference& s) {
  s.check(fits(s.dims("Updates"), to_shape(named_extents(s, s.dims("X")))),
          "Updates", "of the shape that Index names in X");
  same_as_x(s);
}

void infer_where(shape_inference& s) {
  s.check(fits(s.dims("Condition"), s.dims("X")), "Condition",
          "of the shape of X " + to_string(s.dims("X")));
  s.check(fits(s.dims("Y"), s.dims("X")), "Y",
          "of the shape of X " + to_string(s.dims("X")));
  same_as_x(s);
}

/// The number of true elements is known only at run time.
void infer_where_index(shape_inference& s) {
  s.output("Out", {-1, static_cast<std::int64_t>(s.dims("Condition").rank())},
           dtype::int64);
}

op_schema indexed(std::string_view type, std::vector<std::string_view> inputs,
                  void (*infer)(shape_inference&),
                  std::vector<std::vector<std::string_view>> groups,
                  std::vector<std::string_view> reads) {
  auto schema = plain_schema(type, std::move(inputs), infer);
  schema.gradient = {
    .groups = std::move(groups), .reads = std::move(reads), .outputs = {"Out"}};
  return schema;
}

op_schema gather() {
  auto schema =
    indexed("gather", {"X", "Index"}, infer_gather, {{"X"}}, {"X", "Index"});
  schema.inputs.push_back({"Axis", slot_arity::optional});
  schema.gradient.reads.push_back("Axis");
  return schema;
}

} // namespace

void add_indexing(op_schema_table& table) {
  add(table, {gather(),
              indexed("index_select", {"X", "Index"}, infer_index_select,
                      {{"X"}}, {"X", "Index"}),
              indexed("gather_nd", {"X", "Index"}, infer_gather_nd, {{"X"}},
                      {"X", "Index"}),
              indexed("scatter", {"X", "Ids", "Updates"}, infer_scatter,
                      {{"X"}, {"Updates"}}, {"Ids", "Updates"}),
              indexed("scatter_nd_add", {"X", "Index", "Updates"},
                      infer_scatter_nd_add, {{"X"}, {"Updates"}},
                      {"Index", "Updates"}),
              indexed("where", {"Condition", "X", "Y"}, infer_where,
                      {{"X"}, {"Y"}}, {"Condition", "X", "Y"}),
              plain_schema("where_index", {"Condition"}, infer_where_index)});
}

} // namespace troupe::graph::schemas
