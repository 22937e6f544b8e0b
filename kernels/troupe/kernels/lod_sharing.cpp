// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/lod_sharing.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 4> lending = {"X", "Ids", "Input",
                                                     "Logits"};
constexpr std::array<std::string_view, 6> borrowing = {
  "Out", "Output", "Y", "Softmax", "Loss", "Indices"};

/// Beginnings of op types whose outputs have levels of their own or none.
constexpr std::array<std::string_view, 16> apart = {
  "sequence_", "lod_reset", "fused_embedding_seq_pool",
  "matmul_v2", "transpose", "reduce_",
  "arg_",      "norm",      "lstm",
  "gru",       "rnn",       "write_to_array",
  "set_value", "fill_",     "conditional_block",
  "while",
};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool has_levels(const variable* var) {
  return var && var->is_tensor() && var->as_tensor().levels();
}

/// The slot whose sequences the gradient in slot "S@GRAD" forms: S, or Out if
/// the op does not read S.
std::string_view lender_of_gradient(const op_arguments& inputs,
                                    std::string_view slot) {
  constexpr std::string_view suffix = "@GRAD";
  if (!slot.ends_with(suffix))
    return {};
  slot.remove_suffix(suffix.size());
  const auto is_read =
    std::ranges::any_of(inputs.in(slot), [](auto* var) { return var; });
  return is_read ? slot : "Out";
}

/// The inputs that may lend to outputs other than gradients: the first of each
/// lending slot, in the op's order.
std::vector<variable*> first_lenders(const op_arguments& inputs) {
  std::vector<variable*> lenders;
  inputs.for_each_slot([&](const op_slot& slot, auto variables) {
    if (is_among(lending, slot.name) && !variables.empty())
      lenders.push_back(variables.front());
  });
  return lenders;
}

/// Calls `visit(output, input)` for each output that can form the sequences of
/// an input: outputs in order, each with its inputs in the op's order. Either
/// may be null.
template <class Visit>
void for_each_loan(lod_rule rule, const op_arguments& inputs,
                   const op_arguments& outputs, Visit visit) {
  if (rule == lod_rule::values_to_gradients) {
    outputs.for_each_slot([&](const op_slot& slot, auto to) {
      const auto from = inputs.in(lender_of_gradient(inputs, slot.name));
      for (std::size_t i = 0; i < std::min(to.size(), from.size()); ++i)
        visit(to[i], from[i]);
    });
  } else if (rule == lod_rule::inputs_to_outputs) {
    const auto lenders = first_lenders(inputs);
    outputs.for_each_slot([&](const op_slot& slot, auto variables) {
      if (is_among(borrowing, slot.name))
        for (auto* to : variables)
          for (auto* from : lenders)
            visit(to, from);
    });
  }
}

/// Levels that an output gets after the kernel has run. They are copied before,
/// because the kernel may write to the variable that it reads.
struct loan {
  variable* to;
  shared_lod levels;
  std::int64_t rows;

  void grant() const {
    if (!to->is_tensor())
      return;
    auto& value = to->as_tensor();
    if (!value.levels() && value.dims().rank() > 0 && value.dims()[0] == rows)
      value.set_levels(levels);
  }
};

std::vector<loan> find_loans(lod_rule rule, const kernel_context& ctx) {
  std::vector<loan> loans;
  for_each_loan(rule, ctx.inputs(), ctx.outputs(),
                [&](variable* to, const variable* from) {
                  if (!to || !has_levels(from))
                    return;
                  if (!loans.empty() && loans.back().to == to)
                    return; // the first lender counts
                  const auto& value = from->as_tensor();
                  loans.push_back({to, value.levels(), value.dims()[0]});
                });
  return loans;
}

} // namespace

lod_rule lod_rule_of(std::string_view op_type) {
  const auto is_apart = std::ranges::any_of(
    apart, [&](auto prefix) { return op_type.starts_with(prefix); });
  if (is_apart)
    return lod_rule::none;
  return op_type.ends_with("_grad") ? lod_rule::values_to_gradients
                                    : lod_rule::inputs_to_outputs;
}

void run_kernel(kernel& code, lod_rule rule, kernel_context& ctx) {
  if (rule == lod_rule::none
      || std::ranges::none_of(ctx.inputs().variables(), has_levels))
    return code.run(ctx);
  const auto loans = find_loans(rule, ctx);
  code.run(ctx);
  for (const auto& l : loans)
    l.grant();
}

lod_lenders find_lod_lenders(lod_rule rule, const op_arguments& inputs,
                             const op_arguments& outputs) {
  const variable* found = nullptr;
  bool several = false;
  for_each_loan(rule, inputs, outputs,
                [&](const variable*, const variable* from) {
                  if (!from)
                    return;
                  several |= found && found != from;
                  found = from;
                });
  if (several)
    return {lod_lenders::several};
  if (!found)
    return {};
  const auto all = inputs.variables();
  return {
    static_cast<std::uint32_t>(std::ranges::find(all, found) - all.begin())};
}

} // namespace troupe
