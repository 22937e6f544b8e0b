// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/lod_sharing.hpp>
#include <troupe/kernels/slot_arguments.hpp>

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
constexpr std::array<std::string_view, 14> apart = {
  "sequence_", "lod_reset", "fused_embedding_seq_pool",
  "matmul_v2", "transpose", "reduce_",
  "arg_",      "norm",      "lstm",
  "gru",       "rnn",       "write_to_array",
  "set_value", "fill_",
};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool shares(std::string_view op_type) {
  return std::ranges::none_of(
    apart, [&](auto prefix) { return op_type.starts_with(prefix); });
}

bool has_levels(const op_argument& arg) {
  return arg.var && arg.var->is_tensor() && arg.var->as_tensor().levels();
}

/// Slot whose sequences the gradient in slot "S@GRAD" forms: S, or Out if the
/// op does not read S.
std::string_view lender_of_gradient(std::span<const op_argument> inputs,
                                    std::string_view slot) {
  constexpr std::string_view suffix = "@GRAD";
  if (!slot.ends_with(suffix))
    return {};
  slot.remove_suffix(suffix.size());
  const auto is_read = std::ranges::any_of(arguments_in(inputs, slot),
                                           [](auto& in) { return in.var; });
  return is_read ? slot : "Out";
}

/// The inputs that may lend to what is no gradient: the first of each slot that
/// lends, in the op's order.
std::vector<const op_argument*>
find_lenders(std::span<const op_argument> inputs) {
  std::vector<const op_argument*> lenders;
  while (!inputs.empty()) {
    const auto slot = first_slot(inputs);
    if (is_among(lending, slot.front().slot))
      lenders.push_back(&slot.front());
    inputs = inputs.subspan(slot.size());
  }
  return lenders;
}

/// Calls `visit(output, input)` for each output that forms the sequences of an
/// input; outputs one after the other, each with its inputs in the op's order.
template <class Visit>
void for_each_loan(std::span<const op_argument> inputs,
                   std::span<const op_argument> outputs, bool gradient,
                   Visit visit) {
  const auto lenders =
    gradient ? std::vector<const op_argument*>{} : find_lenders(inputs);
  while (!outputs.empty()) {
    const auto slot = first_slot(outputs);
    outputs = outputs.subspan(slot.size());
    const auto to = slot.front().slot;
    if (gradient) {
      const auto from = arguments_in(inputs, lender_of_gradient(inputs, to));
      for (std::size_t i = 0; i < std::min(slot.size(), from.size()); ++i)
        visit(slot[i], from[i]);
    } else if (is_among(borrowing, to)) {
      for (auto& out : slot)
        for (auto* in : lenders)
          visit(out, *in);
    }
  }
}

/// Levels that an output gets when the kernel has run. Copied before it runs:
/// it may write to the variable that it reads.
struct loan {
  variable* to;
  shared_lod levels;
  std::int64_t rows;

  void grant() const {
    if (!to || !to->is_tensor())
      return;
    auto& value = to->as_tensor();
    if (!value.levels() && value.dims().rank() > 0 && value.dims()[0] == rows)
      value.set_levels(levels);
  }
};

class sharing_kernel final : public kernel {
public:
  sharing_kernel(std::unique_ptr<kernel> code, bool gradient)
    : code_(std::move(code)), gradient_(gradient) {}

  void run(kernel_context& ctx) override {
    const auto inputs = ctx.inputs();
    if (std::ranges::none_of(inputs, has_levels))
      return code_->run(ctx);
    const auto loans = find_loans(ctx);
    code_->run(ctx);
    for (auto& l : loans)
      l.grant();
  }

  std::optional<lod_bypass>
  find_bypass(std::span<const op_argument> inputs,
              std::span<const op_argument> outputs) const {
    lod_bypass found{code_.get(), nullptr};
    bool several = false;
    for_each_loan(inputs, outputs, gradient_,
                  [&](const op_argument&, const op_argument& from) {
                    if (!from.var)
                      return;
                    several |= found.lender && found.lender != from.var;
                    found.lender = from.var;
                  });
    if (several)
      return std::nullopt;
    return found;
  }

private:
  std::vector<loan> find_loans(const kernel_context& ctx) const {
    std::vector<loan> loans;
    const op_argument* last = nullptr; // the first lender counts
    for_each_loan(ctx.inputs(), ctx.outputs(), gradient_,
                  [&](const op_argument& to, const op_argument& from) {
                    if (!has_levels(from) || last == &to)
                      return;
                    last = &to;
                    const auto& value = from.var->as_tensor();
                    loans.push_back({to.var, value.levels(), value.dims()[0]});
                  });
    return loans;
  }

  std::unique_ptr<kernel> code_;
  bool gradient_;
};

} // namespace

std::unique_ptr<kernel> share_lod(std::string_view op_type,
                                  std::unique_ptr<kernel> code) {
  if (!shares(op_type))
    return code;
  return std::make_unique<sharing_kernel>(std::move(code),
                                          op_type.ends_with("_grad"));
}

std::optional<lod_bypass> bypass_lod(kernel& made,
                                     std::span<const op_argument> inputs,
                                     std::span<const op_argument> outputs) {
  const auto* sharing = dynamic_cast<const sharing_kernel*>(&made);
  return sharing ? sharing->find_bypass(inputs, outputs) : std::nullopt;
}

} // namespace troupe
