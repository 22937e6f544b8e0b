// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/sub_blocks.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

using name_set = std::set<std::string, std::less<>>;

error_context where(const op_desc& op) {
  error_context at;
  at.op_type = op.type;
  at.call_stack = op.call_stack();
  return at;
}

/// Paddle's while_grad puts these into the step scope itself.
void add_linked_gradients(const op_desc& op, name_set& locals) {
  for (auto& name : op.attributes.get_strings("original_output_grad"))
    locals.insert(name);
}

std::vector<std::string> sorted(const name_set& names) {
  return {names.begin(), names.end()};
}

/// Finds the outer variables of all control-flow ops, those of inner blocks
/// first.
class exposer {
public:
  explicit exposer(program& p) : program_(p), state_(p.blocks.size()) {}

  void expose_ops(std::int32_t index) {
    auto& state = state_[static_cast<std::size_t>(index)];
    if (state == progress::done)
      return;
    state = progress::under_way;
    for (auto& op : program_.blocks[static_cast<std::size_t>(index)].ops)
      if (auto inner = sub_block_of(op))
        expose(op, *inner);
    state = progress::done;
  }

private:
  enum class progress : std::uint8_t { none, under_way, done };

  void expose(op_desc& op, std::int32_t inner) {
    if (inner <= 0 || inner >= static_cast<std::int32_t>(state_.size())
        || state_[static_cast<std::size_t>(inner)] == progress::under_way)
      throw error{errc::graph_invalid,
                  "op " + op.type + " runs block " + std::to_string(inner)
                    + ", which is not a block inside of its own",
                  where(op)};
    expose_ops(inner);
    auto locals = local_names(program_, inner);
    add_linked_gradients(op, locals);
    name_set reads;
    name_set writes;
    for (auto& inside : program_.blocks[static_cast<std::size_t>(inner)].ops) {
      for (auto& name : inside.input_names())
        if (names_variable(name) && !locals.contains(name)
            && !writes.contains(name))
          reads.insert(name);
      for (auto& name : inside.output_names())
        if (names_variable(name) && !locals.contains(name))
          writes.insert(name);
    }
    op.set_input(std::string{outer_reads}, sorted(reads));
    op.set_output(std::string{outer_writes}, sorted(writes));
  }

  program& program_;
  std::vector<progress> state_;
};

void hoist_persistables(program& p) {
  for (std::size_t i = 1; i < p.blocks.size(); ++i)
    for (auto& [name, var] : p.blocks[i].vars)
      if (var.persistable && p.main().find_var(name) == nullptr)
        p.main().add_var(var);
}

bool names_any(const std::vector<std::string>& arguments,
               const name_set& names) {
  return std::ranges::any_of(
    arguments, [&](const std::string& name) { return names.contains(name); });
}

/// GradientMergeOptimizer gives roles Forward and Backward to what adds up
/// gradients, counts steps and updates. None of it concerns samples, so devices
/// without samples run it, too: its role is Optimize.
void mark_merged_updates(std::vector<op_desc>& ops) {
  name_set counted; // conditions and what they are made of
  for (const auto& op : ops)
    if (op.attributes.has(merge_condition))
      counted.insert(op.attributes.get_string(merge_condition, ""));
  if (counted.empty())
    return;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const bool counts = names_any(op->output_names(), counted);
    if (counts)
      for (auto& name : op->input_names())
        counted.insert(name);
    if (counts || op->attributes.has(merge_condition)
        || names_any(op->input("Cond"), counted))
      op->attributes.set("op_role", std::int32_t{role_optimize});
  }
}

} // namespace

bool is_control_flow(std::string_view op_type) noexcept {
  constexpr std::array<std::string_view, 5> types{
    "conditional_block", "conditional_block_infer", "conditional_block_grad",
    "while", "while_grad"};
  return std::ranges::find(types, op_type) != types.end();
}

std::optional<std::int32_t> sub_block_of(const op_desc& op) {
  const auto* value = op.attributes.find("sub_block");
  const auto* block = value ? std::get_if<block_ref>(value) : nullptr;
  if (block == nullptr)
    return std::nullopt;
  return block->index;
}

std::set<std::string, std::less<>> local_names(const program& p,
                                               std::int32_t index) {
  name_set names;
  const auto count = static_cast<std::int32_t>(p.blocks.size());
  while (index > 0 && index < count) {
    auto& b = p.blocks[static_cast<std::size_t>(index)];
    for (auto& [name, var] : b.vars)
      if (!var.persistable)
        names.insert(name);
    index = b.forward_block < index ? b.forward_block : -1;
  }
  return names;
}

program expose_sub_blocks(program p) {
  if (p.blocks.size() < 2 || is_exposed(p))
    return p;
  hoist_persistables(p);
  mark_merged_updates(p.main().ops);
  exposer{p}.expose_ops(0);
  return p;
}

bool is_exposed(const program& p) {
  for (auto& op : p.main().ops)
    if (sub_block_of(op))
      for (auto& slot : op.outputs)
        if (slot.name == outer_writes)
          return true;
  return false;
}

void for_each_op(const program& p,
                 const std::function<void(const op_desc&)>& visit) {
  for (auto& op : p.main().ops) {
    visit(op);
    for_each_op_inside(p, op, visit);
  }
}

// A block comes behind those that it is in, so this ends whatever a file says.
void for_each_op_inside(const program& p, const op_desc& op,
                        const std::function<void(const op_desc&)>& visit) {
  const auto inner = sub_block_of(op);
  if (!inner || *inner <= 0
      || *inner >= static_cast<std::int32_t>(p.blocks.size()))
    return;
  for (auto& inside : p.blocks[static_cast<std::size_t>(*inner)].ops) {
    visit(inside);
    if (sub_block_of(inside).value_or(0) > *inner)
      for_each_op_inside(p, inside, visit);
  }
}

void check_gradients_in_main(const program& p) {
  name_set merged;
  for (auto& op : p.main().ops)
    if ((op.role() & role_backward) != 0)
      for (auto& [parameter, gradient] : op.role_vars())
        merged.insert(gradient);
  for_each_op(p, [&](const op_desc& op) {
    if ((op.role() & role_backward) == 0)
      return;
    for (auto& [parameter, gradient] : op.role_vars())
      if (!merged.contains(gradient))
        throw error{errc::unsupported_op,
                    "op " + op.type + " completes gradient \"" + gradient
                      + "\" in a sub-block; gradients of several devices are "
                        "merged between ops of the main block",
                    where(op)};
  });
}

} // namespace troupe::graph
