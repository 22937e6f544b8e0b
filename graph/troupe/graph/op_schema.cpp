// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/op_schema.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace troupe::graph {

namespace {

error_context where_of(const op_desc& op, std::string_view variable = {}) {
  error_context at;
  at.op_type = op.type;
  at.variable = variable;
  at.call_stack = op.call_stack();
  return at;
}

bool arity_holds(slot_arity arity, std::size_t count) {
  switch (arity) {
  case slot_arity::one: return count == 1;
  case slot_arity::optional: return count <= 1;
  case slot_arity::many: return count >= 1;
  case slot_arity::any: return true;
  }
  return false;
}

std::string_view wanted_count(slot_arity arity) {
  switch (arity) {
  case slot_arity::one: return "exactly one variable";
  case slot_arity::optional: return "at most one variable";
  case slot_arity::many: return "at least one variable";
  case slot_arity::any: return "any number of variables";
  }
  return "";
}

std::string slot_list(const std::vector<slot_schema>& known) {
  std::string text;
  for (const auto& slot : known)
    text += (text.empty() ? "" : ", ") + std::string{slot.name};
  return text;
}

void check_slots(const op_desc& op, const std::vector<op_slot>& slots,
                 const std::vector<slot_schema>& known,
                 const std::string& side) {
  for (const auto& slot : slots)
    if (!slot.arguments.empty()
        && !std::ranges::count(known, slot.name, &slot_schema::name))
      throw error{errc::graph_invalid,
                  "op " + op.type + " has no " + side + " slot " + slot.name
                    + "; it has " + slot_list(known),
                  where_of(op)};
  for (const auto& slot : known) {
    auto found = std::ranges::find(slots, slot.name, &op_slot::name);
    auto count = found == slots.end() ? 0 : found->arguments.size();
    if (!arity_holds(slot.arity, count))
      throw error{errc::graph_invalid,
                  "op " + op.type + " takes "
                    + std::string{wanted_count(slot.arity)} + " in " + side
                    + " slot " + std::string{slot.name} + ", not "
                    + std::to_string(count),
                  where_of(op)};
  }
}

std::vector<std::string> gradient_names(const std::vector<std::string>& of) {
  std::vector<std::string> names;
  for (const auto& name : of)
    names.push_back(gradient_name(name));
  return names;
}

/// The gradient op with its inputs: forward inputs and outputs, and gradients
/// of outputs.
op_desc gradient_inputs(const op_schema& schema, const op_desc& forward) {
  op_desc op;
  op.type = forward.type + "_grad";
  op.attributes = forward.attributes;
  auto read = [&op](std::string slot, const std::vector<std::string>& names) {
    if (!names.empty())
      op.set_input(std::move(slot), names);
  };
  for (auto slot : schema.gradient.reads) {
    const auto& in = forward.input(slot);
    read(std::string{slot}, in.empty() ? forward.output(slot) : in);
  }
  for (auto slot : schema.gradient.outputs)
    read(gradient_name(slot), gradient_names(forward.output(slot)));
  return op;
}

void add_gradient_outputs(op_desc& op, const gradient_context& context,
                          const std::vector<std::string_view>& group) {
  for (auto slot : group) {
    const auto& names = context.forward.input(slot);
    if (std::ranges::any_of(names, context.wanted))
      op.set_output(gradient_name(slot), gradient_names(names));
  }
}

} // namespace

std::size_t shape_inference::num_inputs(std::string_view slot) const {
  return op_.input(slot).size();
}

std::size_t shape_inference::num_outputs(std::string_view slot) const {
  return op_.output(slot).size();
}

const var_desc& shape_inference::input(std::string_view slot,
                                       std::size_t index) const {
  const auto& name = op_.input(slot)[index];
  if (auto found = vars_.find_var(name))
    return *found;
  throw error{errc::not_found,
              "op " + op_.type + " reads '" + name + "' in slot "
                + std::string{slot} + ", which is not declared",
              where_of(op_, name)};
}

void shape_inference::output(std::string_view slot, const shape& dims,
                             dtype type, std::size_t index) {
  const auto& names = op_.output(slot);
  if (index >= names.size())
    return;
  auto found = vars_.find_var(names[index]);
  if (!found)
    throw error{errc::not_found,
                "op " + op_.type + " writes '" + names[index] + "' in slot "
                  + std::string{slot} + ", which is not declared",
                where_of(op_, names[index])};
  if (found->persistable && !schemas::fits(found->dims, dims))
    throw error{errc::shape_mismatch,
                "op " + op_.type + " writes shape " + to_string(dims) + " to '"
                  + names[index] + "' of shape " + to_string(found->dims)
                  + " in slot " + std::string{slot},
                where_of(op_, names[index])};
  if (!found->persistable)
    found->dims = dims;
  found->type = type;
}

std::string shape_inference::describe(std::string_view slot,
                                      std::size_t index) const {
  const auto& var = input(slot, index);
  return std::string{slot} + " '" + var.name + "' " + to_string(var.dims);
}

void shape_inference::check(bool condition, std::string_view slot,
                            std::string_view expected,
                            std::size_t index) const {
  if (condition)
    return;
  throw error{errc::shape_mismatch,
              "op " + op_.type + ": " + describe(slot, index) + " must be "
                + std::string{expected},
              where_of(op_, input(slot, index).name)};
}

void shape_inference::check_attribute(bool condition,
                                      std::string_view attribute,
                                      std::string_view expected) const {
  if (condition)
    return;
  throw error{errc::invalid_argument,
              "op " + op_.type + ": attribute " + std::string{attribute}
                + " must be " + std::string{expected},
              where_of(op_)};
}

void shape_inference::check_index_type(std::string_view slot) const {
  const auto& var = input(slot);
  if (var.type == dtype::int32 || var.type == dtype::int64)
    return;
  throw error{errc::dtype_mismatch,
              "op " + op_.type + ": " + describe(slot, 0)
                + " must be int64 or int32, not "
                + std::string{to_string(var.type)},
              where_of(op_, var.name)};
}

std::size_t shape_inference::axis(std::string_view attribute,
                                  std::int64_t value, std::size_t rank) const {
  auto extent = static_cast<std::int64_t>(rank);
  check_attribute(value >= -extent && value < extent, attribute,
                  "an axis of a tensor of rank " + std::to_string(rank)
                    + ", not " + std::to_string(value));
  return static_cast<std::size_t>(value < 0 ? value + extent : value);
}

op_schema_table op_schemas() {
  op_schema_table table;
  schemas::add_activations(table);
  schemas::add_arithmetic(table);
  schemas::add_comparisons(table);
  schemas::add_convolutions(table);
  schemas::add_gradient_ops(table);
  schemas::add_expansions(table);
  schemas::add_indexing(table);
  schemas::add_initializers(table);
  schemas::add_joining(table);
  schemas::add_losses(table);
  schemas::add_movement(table);
  schemas::add_normalizations(table);
  schemas::add_optimizers(table);
  schemas::add_products(table);
  schemas::add_ranges(table);
  schemas::add_rankings(table);
  schemas::add_recurrent(table);
  schemas::add_reductions(table);
  schemas::add_sequences(table);
  schemas::add_slices(table);
  return table;
}

const op_schema& find_schema(const op_schema_table& schemas,
                             const op_desc& op) {
  auto i = schemas.find(op.type);
  if (i == schemas.end())
    throw error{errc::unsupported_op,
                "the schema table has no op type '" + op.type + "'",
                where_of(op)};
  return i->second;
}

void infer_shapes(const op_desc& op, block& vars,
                  const op_schema_table& schemas) {
  const auto& schema = find_schema(schemas, op);
  check_slots(op, op.inputs, schema.inputs, "input");
  check_slots(op, op.outputs, schema.outputs, "output");
  shape_inference inference{op, vars};
  schema.infer(inference);
}

std::vector<op_desc> make_gradient(const op_schema& schema,
                                   const gradient_context& context) {
  if (schema.gradient.make)
    return schema.gradient.make(context);
  std::vector<op_desc> ops;
  for (const auto& group : schema.gradient.groups) {
    auto op = gradient_inputs(schema, context.forward);
    add_gradient_outputs(op, context, group);
    if (!op.outputs.empty())
      ops.push_back(std::move(op));
  }
  return ops;
}

namespace schemas {

void add(op_schema_table& table, std::initializer_list<op_schema> family) {
  for (const auto& schema : family)
    table.insert_or_assign(std::string{schema.type}, schema);
}

bool fits(const shape& a, const shape& b) noexcept {
  return std::ranges::equal(a, b, [](auto x, auto y) { return fits(x, y); });
}

std::int64_t product(const shape& dims, std::size_t first,
                     std::size_t last) noexcept {
  std::int64_t result = 1;
  for (auto i = first; i < last; ++i) {
    if (dims[i] < 0)
      return -1;
    result *= dims[i];
  }
  return result;
}

shape unknown_extents(std::size_t rank) {
  return to_shape(std::vector<std::int64_t>(rank, -1));
}

op_schema plain_schema(std::string_view type,
                       std::vector<std::string_view> inputs,
                       void (*infer)(shape_inference&)) {
  op_schema schema{
    .type = type, .inputs = {}, .outputs = {{"Out"}}, .infer = infer};
  for (auto slot : inputs)
    schema.inputs.push_back({slot});
  return schema;
}

shape to_shape(const std::vector<std::int64_t>& dims) {
  return shape{std::span{dims}};
}

void same_as_x(shape_inference& s) {
  s.output("Out", s.dims("X"), s.type("X"));
}

} // namespace schemas

} // namespace troupe::graph
