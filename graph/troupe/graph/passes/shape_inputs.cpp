// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/shape_inputs.hpp>

#include <troupe/graph/variable_uses.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

/// Positions of the ops that read elements, and of those that read only shape.
struct reader_kinds {
  std::vector<std::size_t> of_elements;
  std::vector<std::size_t> of_shape;
};

bool reads_elements(const op_desc& op, std::string_view name) {
  return std::ranges::any_of(op.inputs, [&](const op_slot& slot) {
    return !reads_only_shape(op.type, slot.name)
           && std::ranges::find(slot.arguments, name) != slot.arguments.end();
  });
}

reader_kinds kinds_of(const block& b, std::string_view name,
                      const variable_uses& u) {
  reader_kinds kinds;
  for (auto reader : u.readers)
    (reads_elements(b.ops[reader], name) ? kinds.of_elements : kinds.of_shape)
      .push_back(reader);
  return kinds;
}

std::string shape_name(std::string_view variable) {
  return std::string{variable} + "@SHAPE";
}

bool is_kept_for_shape(const block& b, std::string_view name,
                       const variable_uses& u, const reader_kinds& readers) {
  if (readers.of_shape.empty() || u.writers.size() != 1)
    return false;
  const auto first = readers.of_shape.front();
  const auto* var = b.find_var(name);
  return u.writers.front() < first
         && (readers.of_elements.empty() || readers.of_elements.back() < first)
         && var && var->kind == var_kind::dense && !var->persistable
         && !b.find_var(shape_name(name));
}

op_desc shape_of(const op_desc& writer, const std::string& name) {
  op_desc op;
  op.type = shape_of_type;
  op.set_input("X", {name});
  op.set_output("Out", {shape_name(name)});
  op.attributes.set("op_role", writer.role() & ~std::int32_t{role_loss});
  if (auto stack = writer.call_stack(); !stack.empty())
    op.attributes.set("op_callstack", std::move(stack));
  return op;
}

void read_shape(op_desc& op, std::string_view name) {
  for (auto& slot : op.inputs)
    if (reads_only_shape(op.type, slot.name))
      for (auto& argument : slot.arguments)
        if (argument == name)
          argument = shape_name(name);
}

struct kept_value {
  std::string name;
  std::size_t writer;
  std::vector<std::size_t> readers; ///< of the shape
};

std::vector<kept_value> find_kept(const block& b) {
  std::vector<kept_value> kept;
  for (auto& [name, u] : find_uses(b))
    if (auto readers = kinds_of(b, name, u);
        is_kept_for_shape(b, name, u, readers))
      kept.push_back(
        {std::string{name}, u.writers.front(), std::move(readers.of_shape)});
  return kept;
}

} // namespace

bool reads_only_shape(std::string_view op_type, std::string_view slot) {
  constexpr std::array types{std::string_view{"elementwise_add_grad"},
                             std::string_view{"elementwise_sub_grad"}};
  return std::ranges::find(types, op_type) != types.end()
         && (slot == "X" || slot == "Y");
}

bool has_shape_inputs(const program& p) {
  return std::ranges::any_of(p.main().ops, [](const op_desc& op) {
    return std::ranges::any_of(op.inputs, [&op](const op_slot& slot) {
      return reads_only_shape(op.type, slot.name);
    });
  });
}

program separate_shape_inputs(program p) {
  auto& b = p.main();
  std::multimap<std::size_t, op_desc> made; // by position of the writer
  for (auto& [name, position, readers] : find_kept(b)) {
    auto var = b.var(name);
    var.name = shape_name(name);
    b.add_var(std::move(var));
    made.emplace(position, shape_of(b.ops[position], name));
    for (auto reader : readers)
      read_shape(b.ops[reader], name);
  }
  std::vector<op_desc> ops;
  ops.reserve(b.ops.size() + made.size());
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    ops.push_back(std::move(b.ops[i]));
    for (auto [m, end] = made.equal_range(i); m != end; ++m)
      ops.push_back(std::move(m->second));
  }
  b.ops = std::move(ops);
  return p;
}

} // namespace troupe::graph
