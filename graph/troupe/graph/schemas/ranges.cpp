// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

/// How many numbers there are only the values say.
void infer_range(shape_inference& s) {
  s.output("Out", {-1}, s.type("Start"));
}

} // namespace

void add_ranges(op_schema_table& table) {
  add(table, {{.type = "range",
               .inputs = {{"Start"}, {"End"}, {"Step"}},
               .outputs = {{"Out"}},
               .infer = infer_range}});
}

} // namespace troupe::graph::schemas
