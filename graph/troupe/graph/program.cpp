// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/program.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/name_table.hpp>
#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace troupe::graph {

namespace {

using name_set = std::set<std::string, std::less<>>;

constexpr std::string_view gradient_suffix = "@GRAD";
constexpr std::int32_t roles_not_for_test = role_backward | role_optimize
                                            | role_rpc | role_dist
                                            | role_lr_sched | role_collective;

const std::vector<std::string>& find_slot(const std::vector<op_slot>& slots,
                                          std::string_view name) {
  static const std::vector<std::string> none;
  auto i = std::ranges::find(slots, name, &op_slot::name);
  return i == slots.end() ? none : i->arguments;
}

void set_slot(std::vector<op_slot>& slots, std::string name,
              std::vector<std::string> arguments) {
  auto i = std::ranges::find(slots, name, &op_slot::name);
  if (i == slots.end())
    slots.push_back({std::move(name), std::move(arguments)});
  else
    i->arguments = std::move(arguments);
}

error_context where(const op_desc& op) {
  error_context at;
  at.op_type = op.type;
  at.call_stack = op.call_stack();
  return at;
}

const std::string& only_argument(const op_desc& op,
                                 const std::vector<std::string>& arguments,
                                 std::string_view slot, const char* side) {
  if (arguments.size() == 1)
    return arguments.front();
  throw error{errc::graph_invalid,
              "op " + op.type + " must have exactly one variable in " + side
                + " slot " + std::string{slot} + ", but has "
                + std::to_string(arguments.size()),
              where(op)};
}

std::vector<std::string> all_arguments(const std::vector<op_slot>& slots) {
  std::vector<std::string> names;
  for (const auto& slot : slots)
    names.insert(names.end(), slot.arguments.begin(), slot.arguments.end());
  return names;
}

/// Calls `visit` with each op of the main block that has exactly this role.
template <class Visit>
void for_each_with_role(const program& p, std::int32_t role, Visit visit) {
  for (const auto& op : p.main().ops)
    if (op.role() == role)
      visit(op);
}

/// The output of the forward op that computes the loss. If that op has several
/// outputs, the one in slot Loss.
std::string loss_of_forward_op(const program& p) {
  std::string loss;
  for_each_with_role(p, role_forward | role_loss, [&](const op_desc& op) {
    auto names = op.output_names();
    if (names.size() != 1)
      names = op.output("Loss");
    if (names.size() == 1)
      loss = names.front();
  });
  return loss;
}

/// The variable whose gradient is written by the op that starts the backward
/// pass.
std::string loss_of_backward_op(const program& p) {
  std::string loss;
  for_each_with_role(p, role_backward | role_loss, [&](const op_desc& op) {
    for (const auto& name : op.output_names())
      if (loss.empty() && name.ends_with(gradient_suffix))
        loss = name.substr(0, name.size() - gradient_suffix.size());
  });
  return loss;
}

bool names(const std::vector<std::string>& arguments, const std::string& name) {
  return std::ranges::find(arguments, name) != arguments.end();
}

/// With mixed precision, the loss is multiplied by a factor, and gradients are
/// divided by it later. Returns the loss before that multiplication.
std::string before_scaling(const program& p, const std::string& loss) {
  const op_desc* scaling = nullptr;
  for (const auto& op : p.main().ops)
    if (op.type == "elementwise_mul" && names(op.output("Out"), loss))
      scaling = &op;
  if (!scaling || scaling->input("X").size() != 1
      || scaling->input("Y").size() != 1)
    return loss;
  const auto& factor = scaling->only_input("Y");
  const bool undone = std::ranges::any_of(p.main().ops, [&](const auto& op) {
    return op.type == "check_finite_and_unscale"
           && names(op.input("Scale"), factor);
  });
  return undone ? scaling->only_input("X") : loss;
}

bool is_fed(const block& b, const std::string& name) {
  auto var = b.find_var(name);
  return var && var->kind == var_kind::dense && !var->persistable;
}

/// Variables that ops of the main block read before an op writes them.
std::vector<std::string> feeds_of_main(const program& p) {
  name_set fed;
  name_table written{p.main().vars.size()};
  for (const auto& op : p.main().ops) {
    for (const auto& slot : op.inputs)
      for (const auto& name : slot.arguments)
        if (!written.contains(name) && is_fed(p.main(), name))
          fed.insert(name);
    // A feed op only marks its output as a feed.
    if (op.type == "feed")
      continue;
    for (const auto& slot : op.outputs)
      for (const auto& name : slot.arguments)
        written.add(name);
  }
  fed.erase(std::string{empty_argument});
  return {fed.begin(), fed.end()};
}

bool runs_in_test(const op_desc& op) {
  return (op.role() & roles_not_for_test) == 0;
}

/// Programs from Paddle can also have the attribute on ops that have no schema
/// here.
void set_is_test(op_desc& op, const op_schema_table& schemas) {
  auto known = schemas.find(op.type);
  if (known != schemas.end() && !known->second.is_test.empty())
    op.attributes.set(std::string{known->second.is_test}, true);
  else if (op.attributes.has("is_test"))
    op.attributes.set("is_test", true);
}

void add_names(name_set& to, const std::vector<std::string>& names) {
  to.insert(names.begin(), names.end());
}

/// Drops variables that are neither used by an op nor inputs of the program.
void drop_unused_vars(block& b, const name_set& used) {
  std::erase_if(b.vars, [&](const auto& entry) {
    return !used.contains(entry.first) && !entry.second.need_check_feed;
  });
}

} // namespace

const std::vector<std::string>& op_desc::input(std::string_view slot) const {
  return find_slot(inputs, slot);
}

const std::vector<std::string>& op_desc::output(std::string_view slot) const {
  return find_slot(outputs, slot);
}

void op_desc::set_input(std::string slot, std::vector<std::string> arguments) {
  set_slot(inputs, std::move(slot), std::move(arguments));
}

void op_desc::set_output(std::string slot, std::vector<std::string> arguments) {
  set_slot(outputs, std::move(slot), std::move(arguments));
}

const std::string& op_desc::only_input(std::string_view slot) const {
  return only_argument(*this, input(slot), slot, "input");
}

const std::string& op_desc::only_output(std::string_view slot) const {
  return only_argument(*this, output(slot), slot, "output");
}

std::vector<std::string> op_desc::input_names() const {
  return all_arguments(inputs);
}

std::vector<std::string> op_desc::output_names() const {
  return all_arguments(outputs);
}

std::int32_t op_desc::role() const {
  return static_cast<std::int32_t>(attributes.get_int("op_role", role_forward));
}

std::vector<std::pair<std::string, std::string>> op_desc::role_vars() const {
  auto names = attributes.get_strings("op_role_var");
  if (names.size() % 2 != 0)
    throw error{errc::graph_invalid,
                "op " + type + " has an odd number of names ("
                  + std::to_string(names.size())
                  + ") in op_role_var; it lists pairs of parameter and "
                    "gradient",
                where(*this)};
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < names.size(); i += 2)
    pairs.emplace_back(std::move(names[i]), std::move(names[i + 1]));
  return pairs;
}

std::vector<std::string> op_desc::call_stack() const {
  return attributes.get_strings("op_callstack");
}

const var_desc* block::find_var(std::string_view name) const {
  auto i = vars.find(name);
  return i == vars.end() ? nullptr : &i->second;
}

var_desc* block::find_var(std::string_view name) {
  auto i = vars.find(name);
  return i == vars.end() ? nullptr : &i->second;
}

const var_desc& block::var(std::string_view name) const {
  if (auto found = find_var(name))
    return *found;
  error_context at;
  at.variable = name;
  throw error{errc::not_found,
              "block " + std::to_string(index) + " declares no variable '"
                + std::string{name} + "'",
              std::move(at)};
}

var_desc& block::add_var(var_desc desc) {
  auto name = desc.name;
  return vars.insert_or_assign(std::move(name), std::move(desc)).first->second;
}

std::string find_loss(const program& p) {
  auto loss = loss_of_forward_op(p);
  if (loss.empty())
    loss = loss_of_backward_op(p);
  if (loss.empty())
    throw error{errc::not_found,
                "the program names no loss: it has neither an op with op_role "
                "256 (Forward|Loss) nor one with 257 (Backward|Loss)"};
  return before_scaling(p, loss);
}

std::vector<std::string> feed_names(const program& p) {
  const auto runs_block = [](const op_desc& op) {
    return sub_block_of(op).has_value();
  };
  if (std::ranges::any_of(p.main().ops, runs_block))
    return feeds_of_main(expose_sub_blocks(p));
  return feeds_of_main(p);
}

std::string gradient_name(std::string_view variable) {
  return std::string{variable} + std::string{gradient_suffix};
}

program clone_for_test(const program& p) {
  const auto schemas = op_schemas();
  auto copy = p;
  name_set used;
  for (auto& b : copy.blocks) {
    std::erase_if(b.ops, [](const op_desc& op) { return !runs_in_test(op); });
    for (auto& op : b.ops) {
      set_is_test(op, schemas);
      add_names(used, op.input_names());
      add_names(used, op.output_names());
    }
  }
  for (auto& b : copy.blocks)
    drop_unused_vars(b, used);
  return copy;
}

} // namespace troupe::graph
