// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/gradient_difference.hpp>

#include <support/op_compare.hpp>
#include <support/op_runner.hpp>
#include <troupe/graph/own_ops/gradient_check.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace troupe::test {

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

/// What the case says of its gradient, as a schema. Refers to the case.
graph::op_schema schema_of(const op_case& c) {
  graph::op_schema schema{.type = c.type};
  for (const auto& [slot, count] : c.outputs)
    schema.outputs.push_back({slot, graph::slot_arity::any});
  schema.gradient.groups = {views(c.gradient->wanted)};
  schema.gradient.reads = views(c.gradient->kept);
  schema.gradient.outputs = views(c.gradient->results);
  return schema;
}

tensor tensor_of(const op_value& value, arena& memory) {
  auto exact = tensor::make(memory, value.dims, dtype::float64);
  std::ranges::copy(value.elements, exact.values<double>().begin());
  return cast(exact, value.type, memory);
}

graph::gradient_case case_of(const op_case& c, arena& memory) {
  graph::gradient_case what{.type = c.type,
                            .inputs = {},
                            .attributes = c.attributes,
                            .outputs = c.outputs,
                            .step = c.step};
  for (const auto& [slot, values] : c.inputs)
    for (const auto& value : values)
      what.inputs[slot].push_back(tensor_of(value, memory));
  return what;
}

std::string check_alone(const kernel_table& table, const op_case& forward) {
  const auto c = with_float_type(forward, dtype::float64);
  const auto backward = backward_of(c, run_op(table, c));
  for (const auto& [slot, values] : run_op(table, backward)) {
    const auto alone = run_op(table, only_output(backward, slot));
    const auto text = difference(alone, {{slot, values}}, 0);
    if (!text.empty())
      return "alone against all together: " + text;
  }
  return {};
}

} // namespace

std::string gradient_difference(const kernel_table& table,
                                const op_case& forward) {
  arena memory{make_host_memory_source()};
  const auto wrong = graph::find_wrong_gradient(
    {{forward.type, schema_of(forward)}}, table, case_of(forward, memory));
  return wrong ? to_string(*wrong) : check_alone(table, forward);
}

} // namespace troupe::test
