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

std::int32_t count_of(const program& p) {
  return static_cast<std::int32_t>(p.blocks.size());
}

const block& block_at(const program& p, std::int32_t index) {
  return p.blocks[static_cast<std::size_t>(index)];
}

error_context where(const op_desc& op) {
  error_context at;
  at.op_type = op.type;
  at.call_stack = op.call_stack();
  return at;
}

/// Adds the gradients that Paddle's while_grad itself puts into the step scope.
void add_linked_gradients(const op_desc& op, name_set& locals) {
  for (auto& name : op.attributes.get_strings("original_output_grad"))
    locals.insert(name);
}

std::vector<std::string> sorted(const name_set& names) {
  return {names.begin(), names.end()};
}

/// True if `name` belongs to the step scope of block `index`: the block
/// declares it and it is not persistable. A gradient block runs in the scope of
/// its forward block, so variables of that block count too.
bool is_local(const program& p, std::int32_t index, std::string_view name) {
  while (index > 0 && index < count_of(p)) {
    const auto& b = block_at(p, index);
    const auto* var = b.find_var(name);
    if (var && !var->persistable)
      return true;
    index = b.forward_block < index ? b.forward_block : -1;
  }
  return false;
}

[[noreturn]] void bad_block(const op_desc& op, std::int32_t outer,
                            const std::string& why) {
  throw error{errc::graph_invalid,
              "op " + op.type + " of block " + std::to_string(outer) + " "
                + why,
              where(op)};
}

/// The blocks that run, each after the blocks that its ops run. The main block
/// is the last. A loop, not a recursion, because a file can nest blocks to any
/// depth.
class block_order {
public:
  explicit block_order(const program& p)
    : program_(p), state_(p.blocks.size()) {
    enter(0);
    while (!path_.empty())
      advance();
  }

  const std::vector<std::int32_t>& blocks() const { return blocks_; }

private:
  enum class progress : std::uint8_t { none, under_way, done };
  struct place {
    std::int32_t block;
    std::size_t next_op;
  };

  progress& state_of(std::int32_t index) {
    return state_[static_cast<std::size_t>(index)];
  }

  void enter(std::int32_t index) {
    state_of(index) = progress::under_way;
    path_.push_back({index, 0});
  }

  void advance() {
    auto& [index, next] = path_.back();
    const auto& ops = block_at(program_, index).ops;
    while (next < ops.size()) {
      const auto& op = ops[next++];
      if (const auto inner = sub_block_of(op); inner && is_new(op, *inner))
        return enter(*inner);
    }
    state_of(index) = progress::done;
    blocks_.push_back(index);
    path_.pop_back();
  }

  bool is_new(const op_desc& op, std::int32_t inner) {
    const auto outer = path_.back().block;
    if (inner < 0 || inner >= count_of(program_))
      bad_block(op, outer,
                "runs block " + std::to_string(inner) + ", which is not there");
    if (state_of(inner) == progress::under_way)
      bad_block(op, outer,
                "runs block " + std::to_string(inner)
                  + ", which it is itself a part of");
    return state_of(inner) == progress::none;
  }

  const program& program_;
  std::vector<progress> state_;
  std::vector<place> path_;
  std::vector<std::int32_t> blocks_;
};

/// The size of a block, including nested blocks.
struct block_size {
  std::size_t depth = 0;     ///< nesting depth of blocks
  std::size_t arguments = 0; ///< of its ops, after `expose_sub_blocks`
  std::size_t total = 0;     ///< ops and arguments, once per op that runs them
};

std::size_t arguments_of(const std::vector<op_slot>& slots) {
  std::size_t count = 0;
  for (const auto& slot : slots)
    count += slot.arguments.size();
  return count;
}

/// Adds, but stops at one more than the limit, so that the sum cannot overflow.
void add_bounded(std::size_t& sum, std::size_t more) {
  sum = std::min(sum + more, max_nested_arguments + 1);
}

/// Adds the block that `op` runs.
void add_inner(block_size& size, const op_desc& op, std::int32_t outer,
               const block_size& inner) {
  size.depth = std::max(size.depth, inner.depth + 1);
  add_bounded(size.arguments, inner.arguments);
  add_bounded(size.total, inner.arguments);
  add_bounded(size.total, inner.total);
  if (size.depth > max_nested_blocks)
    bad_block(op, outer,
              "runs more than " + std::to_string(max_nested_blocks)
                + " blocks inside each other");
  if (size.total > max_nested_arguments)
    bad_block(op, outer,
              "and those before it run blocks with more than "
                + std::to_string(max_nested_arguments)
                + " ops and arguments, counted once per op that runs them");
}

void check_sizes(const program& p, const std::vector<std::int32_t>& order) {
  std::vector<block_size> sizes(p.blocks.size());
  for (const auto index : order) {
    auto& size = sizes[static_cast<std::size_t>(index)];
    for (const auto& op : block_at(p, index).ops) {
      if (const auto inner = sub_block_of(op))
        add_inner(size, op, index, sizes[static_cast<std::size_t>(*inner)]);
      if (index == 0)
        continue; // its size is not limited
      const auto own = arguments_of(op.inputs) + arguments_of(op.outputs);
      add_bounded(size.arguments, own);
      add_bounded(size.total, own + 1);
    }
  }
}

/// Limits chains of forward blocks (gradients of gradients), because looking up
/// a name walks along such a chain.
void check_forward_blocks(const program& p) {
  std::vector<std::size_t> lengths(p.blocks.size());
  for (std::int32_t i = 1; i < count_of(p); ++i) {
    const auto forward = block_at(p, i).forward_block;
    if (forward <= 0 || forward >= i)
      continue;
    auto& length = lengths[static_cast<std::size_t>(i)];
    length = lengths[static_cast<std::size_t>(forward)] + 1;
    if (length > max_nested_blocks)
      throw error{errc::graph_invalid,
                  "block " + std::to_string(i) + " is the gradient of a "
                    + "gradient of more than "
                    + std::to_string(max_nested_blocks) + " blocks"};
  }
}

/// The result of `block_order`, after all checks.
std::vector<std::int32_t> inner_first(const program& p) {
  auto order = block_order{p}.blocks();
  check_sizes(p, order);
  check_forward_blocks(p);
  return order;
}

/// Adds slots to `op` for the outer variables that its block reads and writes.
/// The ops of that block must have been exposed before.
void expose(op_desc& op, const program& p, std::int32_t inner) {
  auto locals = local_names(p, inner);
  add_linked_gradients(op, locals);
  name_set reads;
  name_set writes;
  for (auto& inside : block_at(p, inner).ops) {
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

/// GradientMergeOptimizer gives roles Forward and Backward to the ops that
/// accumulate gradients, count steps and run the update. These ops do not
/// concern samples, so devices without samples must also run them. They get
/// role Optimize.
void mark_merged_updates(std::vector<op_desc>& ops) {
  name_set counted; // conditions and what they are computed from
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

/// Recursion depth is limited by `check_sub_blocks`.
void visit_ops(const program& p, std::int32_t index,
               const std::function<void(const op_desc&)>& visit) {
  for (const auto& op : block_at(p, index).ops) {
    visit(op);
    if (const auto inner = sub_block_of(op))
      visit_ops(p, *inner, visit);
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

void check_sub_blocks(const program& p) {
  inner_first(p);
}

std::set<std::string, std::less<>> local_names(const program& p,
                                               std::int32_t index) {
  name_set names;
  const auto add = [&](const std::vector<op_slot>& slots) {
    for (const auto& slot : slots)
      for (const auto& name : slot.arguments)
        if (is_local(p, index, name))
          names.insert(name);
  };
  for (const auto& op : block_at(p, index).ops) {
    add(op.inputs);
    add(op.outputs);
  }
  return names;
}

// If a file already has these two slots, they are overwritten.
program expose_sub_blocks(program p) {
  if (p.blocks.size() < 2)
    return p;
  const auto order = inner_first(p);
  hoist_persistables(p);
  mark_merged_updates(p.main().ops);
  for (const auto index : order)
    for (auto& op : p.blocks[static_cast<std::size_t>(index)].ops)
      if (const auto inner = sub_block_of(op))
        expose(op, p, *inner);
  return p;
}

void for_each_op(const program& p,
                 const std::function<void(const op_desc&)>& visit) {
  check_sub_blocks(p);
  visit_ops(p, 0, visit);
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
