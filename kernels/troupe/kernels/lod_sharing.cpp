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

/// Number of `arguments[i]` among those of its slot.
std::size_t index_in_slot(std::span<const op_argument> arguments,
                          std::size_t i) {
  auto first = i;
  while (first > 0 && arguments[first - 1].slot == arguments[i].slot)
    --first;
  return i - first;
}

/// Slot whose sequences the gradient in slot "S@GRAD" forms: S, or Out if the
/// op does not read S.
std::string_view lender_of_gradient(std::span<const op_argument> inputs,
                                    std::string_view slot) {
  constexpr std::string_view suffix = "@GRAD";
  if (!slot.ends_with(suffix))
    return {};
  slot.remove_suffix(suffix.size());
  const auto is_read = std::ranges::any_of(
    inputs, [slot](auto& in) { return in.slot == slot && in.var; });
  return is_read ? slot : "Out";
}

/// True if output `o` forms the sequences of input `i`.
bool borrows(std::span<const op_argument> outputs, std::size_t o,
             std::span<const op_argument> inputs, std::size_t i,
             bool gradient) {
  const auto to = outputs[o].slot;
  const auto from = inputs[i].slot;
  const auto index = index_in_slot(inputs, i);
  if (gradient)
    return from == lender_of_gradient(inputs, to)
           && index_in_slot(outputs, o) == index;
  return index == 0 && is_among(lending, from) && is_among(borrowing, to);
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
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        auto* lender = inputs[i].var;
        if (!lender || !borrows(outputs, o, inputs, i, gradient_))
          continue;
        if (found.lender && found.lender != lender)
          return std::nullopt;
        found.lender = lender;
      }
    return found;
  }

private:
  std::vector<loan> find_loans(const kernel_context& ctx) const {
    std::vector<loan> loans;
    for (std::size_t o = 0; o < ctx.outputs().size(); ++o)
      for (std::size_t i = 0; i < ctx.inputs().size(); ++i)
        if (has_levels(ctx.inputs()[i])
            && borrows(ctx.outputs(), o, ctx.inputs(), i, gradient_)) {
          const auto& value = ctx.inputs()[i].var->as_tensor();
          loans.push_back(
            {ctx.outputs()[o].var, value.levels(), value.dims()[0]});
          break;
        }
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
