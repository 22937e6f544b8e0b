// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/merging_update.hpp>

#include <algorithm>
#include <vector>

namespace troupe::graph {

namespace {

constexpr std::string_view prefix = "merging_";
constexpr std::string_view gradient_slot = "Grad";

bool can_merge(std::string_view update) {
  return std::ranges::any_of(merging_update_types, [&](std::string_view type) {
    return type.substr(prefix.size()) == update;
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
  return std::ranges::find(merging_update_types, op_type)
         != merging_update_types.end();
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

op_desc merging_update(const op_desc& update, std::size_t num_devices) {
  auto op = update;
  op.type = std::string{prefix} + update.type;
  op.set_input(std::string{gradient_slot},
               std::vector(num_devices, update.only_input("Grad")));
  return op;
}

} // namespace troupe::graph
