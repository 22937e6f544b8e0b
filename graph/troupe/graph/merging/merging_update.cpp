// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/merging/merging_update.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::graph {

namespace {

constexpr std::string_view merging = "merging_";
constexpr std::string_view gathered = "gathered_";
constexpr std::string_view gradient_slot = "Grad";
constexpr std::array<std::string_view, 2> factor_slots{"X", "Out@GRAD"};

bool can_merge(std::string_view update) {
  return std::ranges::any_of(merging_update_types, [&](std::string_view type) {
    return type.substr(merging.size()) == update;
  });
}

bool is_dense(const block& b, const std::string& gradient,
              const op_desc& last) {
  const auto* var = b.find_var(gradient);
  return var && var->kind == var_kind::dense && var->type == dtype::float32
         && !last.attributes.get_bool("is_sparse", false);
}

} // namespace

bool is_merging_update(std::string_view op_type) {
  const auto is_one_of = [&](const auto& types) {
    return std::ranges::find(types, op_type) != types.end();
  };
  return is_one_of(merging_update_types) || is_one_of(gathered_update_types);
}

std::optional<std::size_t> find_merging_update(const block& b,
                                               const use_map& uses,
                                               const std::string& gradient,
                                               std::size_t complete_after) {
  if (!is_dense(b, gradient, b.ops[complete_after]))
    return std::nullopt;
  const auto& [writers, readers] = uses.at(gradient);
  const auto reads =
    readers.end() - std::ranges::upper_bound(readers, complete_after);
  if (reads != 1 || writers.back() > complete_after)
    return std::nullopt;
  const auto& reader = b.ops[readers.back()];
  const auto merges = reader.role() == role_optimize && can_merge(reader.type)
                      && reader.input(gradient_slot) == std::vector{gradient};
  return merges ? std::optional{readers.back()} : std::nullopt;
}

bool keeps_factors(const use_map& uses, const op_desc& product,
                   std::size_t product_at, std::size_t update_at) {
  return std::ranges::all_of(factor_slots, [&](std::string_view slot) {
    const auto& writers = uses.at(product.only_input(slot)).writers;
    const auto next = std::ranges::upper_bound(writers, product_at);
    return next == writers.end() || *next >= update_at;
  });
}

op_desc merging_update(const op_desc& update, std::size_t num_devices) {
  auto op = update;
  op.type = std::string{merging} + update.type;
  op.set_input(std::string{gradient_slot},
               std::vector(num_devices, update.only_input(gradient_slot)));
  return op;
}

op_desc gathered_update(const op_desc& update, const op_desc& product,
                        std::size_t num_devices) {
  auto op = update;
  op.type = std::string{gathered} + update.type;
  op.attributes.set(
    "y_num_col_dims",
    static_cast<std::int32_t>(product.attributes.get_int("y_num_col_dims", 1)));
  std::erase_if(op.inputs,
                [](const op_slot& slot) { return slot.name == gradient_slot; });
  for (auto slot : factor_slots)
    op.set_input(std::string{slot},
                 std::vector(num_devices, product.only_input(slot)));
  return op;
}

} // namespace troupe::graph
