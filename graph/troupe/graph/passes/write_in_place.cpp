// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/write_in_place.hpp>

#include <troupe/graph/argument.hpp>
#include <troupe/graph/variable_uses.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <vector>

namespace troupe::graph {

namespace {

using renames = std::map<std::string, std::string, std::less<>>;

/// `kept`, and the parameters and gradients that op_role_var names.
std::set<std::string> names_to_leave(const block& b,
                                     std::set<std::string> kept) {
  for (auto& op : b.ops)
    for (auto& [parameter, gradient] : op.role_vars()) {
      kept.insert(parameter);
      kept.insert(gradient);
    }
  return kept;
}

bool are_alike(const var_desc& a, const var_desc& b) {
  return a.kind == var_kind::dense && b.kind == var_kind::dense
         && !a.persistable && !b.persistable && a.type == b.type
         && a.dims == b.dims;
}

/// True if the op at `position` is the only reader of a variable that one
/// earlier op writes, and the only writer of a variable that only later ops
/// read.
bool is_passed_on(const variable_uses& from, const variable_uses& to,
                  std::size_t position) {
  return from.writers.size() == 1 && from.writers[0] < position
         && from.readers == std::vector{position}
         && to.writers == std::vector{position}
         && (to.readers.empty() || to.readers.front() > position);
}

renames find_renames(const block& b, const std::set<std::string>& left) {
  const auto uses = find_uses(b);
  renames found;
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    if (!may_write_in_place(b.ops[i].type))
      continue;
    const std::string from{only_variable(b.ops[i].input("Out@GRAD"))};
    const std::string to{only_variable(b.ops[i].output("X@GRAD"))};
    const auto *source = b.find_var(from), *target = b.find_var(to);
    if (source && target && are_alike(*source, *target) && !left.contains(from)
        && !left.contains(to) && is_passed_on(uses.at(from), uses.at(to), i)) {
      const auto before = found.find(from); // `from` may be renamed itself
      found.emplace(to, before == found.end() ? from : before->second);
    }
  }
  return found;
}

void rename(std::vector<op_slot>& slots, const renames& names) {
  for (auto& slot : slots)
    for (auto& argument : slot.arguments)
      if (auto found = names.find(argument); found != names.end())
        argument = found->second;
}

} // namespace

bool may_write_in_place(std::string_view op_type) {
  constexpr std::array<std::string_view, 9> types{
    "gelu_grad", "leaky_relu_grad", "relu_grad",  "relu6_grad", "sigmoid_grad",
    "silu_grad", "softmax_grad",    "swish_grad", "tanh_grad"};
  return std::ranges::find(types, op_type) != types.end();
}

bool has_ops_to_write_in_place(const program& p) {
  return std::ranges::any_of(p.main().ops, [](const op_desc& op) {
    return may_write_in_place(op.type);
  });
}

program write_in_place(program p, const std::set<std::string>& kept) {
  if (p.blocks.size() > 1)
    return p;
  auto& b = p.main();
  const auto names = find_renames(b, names_to_leave(b, kept));
  for (auto& op : b.ops) {
    rename(op.inputs, names);
    rename(op.outputs, names);
  }
  return p;
}

} // namespace troupe::graph
