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

op_schema initializer(std::string_view type) {
  return {.type = type,
          .inputs = {},
          .outputs = {{"Out"}},
          .infer = infer_from_attributes};
}

} // namespace

void add_initializers(op_schema_table& table) {
  add(table, {initializer("fill_constant"), initializer("uniform_random"),
              initializer("gaussian_random"),
              initializer("truncated_gaussian_random")});
}

} // namespace troupe::graph::schemas
