// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/cpu_filter_blocks.hpp>

#include <troupe/graph/variable_uses.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace troupe::actors {

namespace {

using graph::block;
using graph::op_desc;
using graph::use_map;
using graph::var_desc;

constexpr std::string_view filter_slot = "Filter";
constexpr std::string_view gradient_slot = "Filter@GRAD";

bool makes_filter_gradient(const op_desc& op) {
  return op.type == "conv2d_grad" && op.output(gradient_slot).size() == 1;
}

/// True if the op reads the variable `name` once, and only through `slot`.
bool takes_only_as(const op_desc& op, std::string_view slot,
                   std::string_view name) {
  return std::ranges::all_of(op.inputs, [&](const op_slot& s) {
    const auto times = std::ranges::count(s.arguments, name);
    return times == (s.name == slot ? 1 : 0);
  });
}

bool convolves_with(const op_desc& op, std::string_view filter) {
  return (op.type == "conv2d" || op.type == "conv2d_grad")
         && op.attributes.get_int("groups", 1) == 1
         && takes_only_as(op, filter_slot, filter);
}

bool updates(const op_desc& op, const std::string& filter,
             const std::string& gradient) {
  constexpr std::array<std::string_view, 4> types{"sgd", "momentum", "adam",
                                                  "adamw"};
  return std::ranges::find(types, op.type) != types.end()
         && takes_only_as(op, "Param", filter)
         && takes_only_as(op, "Grad", gradient)
         && op.output("ParamOut") == std::vector{filter};
}

bool is_filter(const var_desc* var) {
  return var && var->persistable && var->kind == graph::var_kind::dense
         && var->type == dtype::float32;
}

/// True if only convolutions and one update use the filter, and if only this
/// update reads `gradient`.
bool stays_among_convolutions(const block& b, const use_map& uses,
                              const std::string& filter,
                              const std::string& gradient) {
  const auto& of_filter = uses.at(filter);
  if (of_filter.writers.size() != 1)
    return false;
  const auto update = of_filter.writers.front();
  return updates(b.ops[update], filter, gradient)
         && uses.at(gradient).readers == std::vector{update}
         && std::ranges::all_of(of_filter.readers, [&](std::size_t reader) {
              return reader == update || convolves_with(b.ops[reader], filter);
            });
}

bool may_make_blocks(const block& b, const use_map& uses, const op_desc& op) {
  if (!makes_filter_gradient(op) || op.input(filter_slot).size() != 1)
    return false;
  const auto& filter = op.input(filter_slot).front();
  const auto& gradient = op.output(gradient_slot).front();
  const auto found = uses.find(gradient);
  return is_filter(b.find_var(filter)) && found != uses.end()
         && found->second.writers.size() == 1
         && stays_among_convolutions(b, uses, filter, gradient);
}

} // namespace

graph::program keep_filters_in_blocks(graph::program p) {
  if (p.blocks.size() > 1)
    return p;
  auto& b = p.main();
  const auto uses = graph::find_uses(b);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < b.ops.size(); ++i)
    if (may_make_blocks(b, uses, b.ops[i]))
      found.push_back(i);
  for (const auto i : found)
    b.ops[i].attributes.set(std::string{filter_in_blocks_attribute}, true);
  return p;
}

bool has_filter_gradients(const graph::program& p) {
  return std::ranges::any_of(p.main().ops, makes_filter_gradient);
}

} // namespace troupe::actors
