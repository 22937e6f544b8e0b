// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/dense_gradients.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>

namespace troupe::graph {

namespace {

bool is_sparse(const op_desc& op) {
  return op.attributes.get_bool("is_sparse", false);
}

bool has_rows(const block& b, const op_desc& op, std::string_view slot) {
  return std::ranges::any_of(op.input(slot), [&](const std::string& name) {
    const auto* const var = b.find_var(name);
    return var && var->kind == var_kind::selected_rows;
  });
}

[[noreturn]] void refuse(const op_desc& op, std::string_view slot,
                         const std::string& what) {
  throw error(errc::unsupported_op,
              op.type + " with " + what
                + " treats row-sparse gradients differently from dense ones, "
                  "and this kind of device has only dense ones",
              {.op_type = op.type, .variable = op.input(slot).front()});
}

void require_same_results(const block& b, const op_desc& op) {
  if (is_sparse(op) && op.attributes.get_int("padding_idx", -1) != -1)
    refuse(op, "W", "padding_idx");
  if (!has_rows(b, op, "Grad"))
    return;
  if (op.attributes.get_bool("lazy_mode", false))
    refuse(op, "Grad", "lazy_mode");
  if (op.type == "momentum"
      && op.attributes.get_float("rescale_grad", 1.0f) != 1.0f)
    refuse(op, "Grad", "rescale_grad");
}

} // namespace

bool makes_row_gradients(const program& p) {
  return std::ranges::any_of(p.blocks, [](const block& b) {
    return std::ranges::any_of(b.ops, is_sparse);
  });
}

program dense_gradients(program p) {
  for (auto& b : p.blocks) {
    for (auto& op : b.ops)
      require_same_results(b, op);
    for (auto& op : b.ops)
      if (is_sparse(op))
        op.attributes.set("is_sparse", false);
    for (auto& [name, var] : b.vars)
      if (var.kind == var_kind::selected_rows)
        var.kind = var_kind::dense;
  }
  return p;
}

} // namespace troupe::graph
