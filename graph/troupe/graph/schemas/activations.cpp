// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

void infer_softmax(shape_inference& s) {
  s.axis("axis", s.attributes().get_int("axis", -1), s.dims("X").rank());
  same_as_x(s);
}

/// Activations whose gradient is computed from their output.
op_schema from_output(std::string_view type,
                      void (*infer)(shape_inference&) = same_as_x) {
  return {
    .type = type,
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = infer,
    .gradient = {.groups = {{"X"}}, .reads = {"Out"}, .outputs = {"Out"}}};
}

/// Those whose gradient needs the input.
op_schema from_input(std::string_view type) {
  return {.type = type,
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .infer = same_as_x,
          .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}}};
}

} // namespace

void add_activations(op_schema_table& table) {
  add(table, {from_output("relu"), from_output("sigmoid"), from_output("tanh"),
              from_output("softmax", infer_softmax), from_input("gelu"),
              from_input("square")});
}

} // namespace troupe::graph::schemas
