// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

void infer_comparison(shape_inference& s) {
  s.output("Out", broadcast(s), dtype::boolean);
}

void infer_test(shape_inference& s) {
  s.output("Out", s.dims("X"), dtype::boolean);
}

constexpr std::string_view comparisons[] = {
  "equal",         "not_equal",   "less_than",  "less_equal", "greater_than",
  "greater_equal", "logical_and", "logical_or", "logical_xor"};

constexpr std::string_view tests[] = {"logical_not", "isfinite_v2", "isinf_v2",
                                      "isnan_v2"};

} // namespace

shape broadcast(const shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& y = s.dims("Y");
  const bool x_is_low = x.rank() < y.rank();
  auto out = x_is_low ? y : x;
  const auto& low = x_is_low ? x : y;
  const auto offset = out.rank() - low.rank();
  auto axis = s.attributes().get_int("axis", -1);
  if (axis < 0 || offset == 0)
    axis = static_cast<std::int64_t>(offset);
  s.check_attribute(axis <= static_cast<std::int64_t>(offset), "axis",
                    "at most " + std::to_string(offset) + " for X "
                      + to_string(x) + " and Y " + to_string(y));
  for (std::size_t i = 0; i < low.rank(); ++i) {
    auto& extent = out[i + static_cast<std::size_t>(axis)];
    s.check(fits(extent, low[i]) || extent == 1 || low[i] == 1, "Y",
            "a shape that broadcasts with X " + to_string(x));
    extent = broadcast(extent, low[i]);
  }
  return out;
}

void add_comparisons(op_schema_table& table) {
  for (auto type : comparisons)
    add(table, {{.type = type,
                 .inputs = {{"X"}, {"Y"}},
                 .outputs = {{"Out"}},
                 .infer = infer_comparison}});
  for (auto type : tests)
    add(table, {{.type = type,
                 .inputs = {{"X"}},
                 .outputs = {{"Out"}},
                 .infer = infer_test}});
}

} // namespace troupe::graph::schemas
