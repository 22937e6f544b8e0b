// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/recompute_activations.hpp>

#include <troupe/graph/argument.hpp>
#include <troupe/graph/passes/fuse_batch_norm.hpp>
#include <troupe/graph/variable_uses.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

bool is_backward(const op_desc& op) {
  return (op.role() & role_backward) != 0;
}

bool is_forward(const op_desc& op) {
  return (op.role() & ~std::int32_t{role_loss}) == role_forward;
}

/// True for a batch norm with the step's statistics and a relu, but without a
/// sum: the whole op, or the part of a split one that writes Y.
bool writes_activation(const op_desc& op) {
  const auto split = op.type == "sync_batch_norm_normalize"
                     && op.attributes.get_string("act_type", "") == "relu"
                     && op.input("Z").empty();
  return (split || op.type == fused_batch_norm_types[0]) && is_forward(op)
         && !op.attributes.get_bool("use_global_stats", false)
         && !op.attributes.get_bool("is_test", false);
}

std::string again(const std::string& name) {
  return name + "@AGAIN";
}

/// An activation and its readers in the backward pass.
struct activation {
  std::size_t writer;
  std::string name;
  std::string from; ///< X of the writer
  std::vector<std::size_t> readers;
  std::string after; ///< a gradient that the first reader reads
};

class activation_finder {
public:
  activation_finder(const block& b, const std::set<std::string>& kept)
    : block_(b), kept_(kept), uses_(find_uses(b)) {}

  std::vector<activation> find() const {
    std::vector<activation> found;
    for (std::size_t i = 0; i < block_.ops.size(); ++i)
      if (auto a = activation_of(i))
        found.push_back(std::move(*a));
    // An activation that another one is recomputed from is not recomputed: it
    // has to be kept anyway.
    std::set<std::string> sources;
    for (auto& a : found)
      sources.insert(a.from);
    std::erase_if(
      found, [&](const activation& a) { return sources.contains(a.name); });
    return found;
  }

private:
  std::optional<activation> activation_of(std::size_t at) const {
    const auto& op = block_.ops[at];
    activation a{};
    a.writer = at;
    a.name = only_variable(op.output("Y"));
    a.from = only_variable(op.input("X"));
    if (!writes_activation(op) || !is_temporary(a.name))
      return {};
    const auto& readers = uses_.at(a.name).readers;
    const auto first = std::ranges::find_if(
      readers, [&](std::size_t r) { return !is_forward(block_.ops[r]); });
    a.readers.assign(first, readers.end());
    const auto all_backward =
      std::ranges::all_of(a.readers, [&](std::size_t reader) {
        return is_backward(block_.ops[reader]);
      });
    if (a.readers.empty() || !all_backward
        || !keeps_inputs(op, at, a.readers.front())
        || !is_kept_anyhow(a.from, a.readers.front()))
      return {};
    a.after = gradient_for(a.readers.front());
    return a.after.empty() ? std::nullopt : std::optional{std::move(a)};
  }

  /// True if one op writes it before all reads and it is not needed after the
  /// step.
  bool is_temporary(const std::string& name) const {
    const auto* var = name.empty() ? nullptr : block_.find_var(name);
    if (!var || var->persistable || var->kind != var_kind::dense
        || kept_.contains(name) || block_.find_var(again(name)))
      return false;
    const auto& u = uses_.at(name);
    return u.writers.size() == 1 && !u.readers.empty()
           && u.readers.front() > u.writers.front();
  }

  /// True if the values that a recomputation reads do not change between op
  /// `at` and op `reader`.
  bool keeps_inputs(const op_desc& op, std::size_t at,
                    std::size_t reader) const {
    const auto keeps = [&](std::string_view name) {
      return !name.empty()
             && std::ranges::none_of(uses_.at(name).writers,
                                     [&](std::size_t writer) {
                                       return writer > at && writer < reader;
                                     });
    };
    return keeps(only_variable(op.input("X")))
           && keeps(only_variable(op.input("Scale")))
           && keeps(only_variable(op.input("Bias")))
           && keeps(only_variable(op.output("SavedMean")))
           && keeps(only_variable(op.output("SavedVariance")));
  }

  /// True if the variable is kept until op `reader` anyway: that op or a later
  /// one reads it, or it outlives the step.
  bool is_kept_anyhow(const std::string& name, std::size_t reader) const {
    const auto* var = block_.find_var(name);
    return uses_.at(name).readers.back() >= reader || !var || var->persistable
           || kept_.contains(name);
  }

  /// An input of op `reader` that an earlier op of the backward pass writes.
  /// Empty if there is none.
  std::string gradient_for(std::size_t reader) const {
    for (auto& name : block_.ops[reader].input_names()) {
      const auto found = uses_.find(name);
      if (found != uses_.end()
          && std::ranges::any_of(
            found->second.writers, [&](std::size_t writer) {
              return writer < reader && is_backward(block_.ops[writer]);
            }))
        return name;
    }
    return {};
  }

  const block& block_;
  const std::set<std::string>& kept_;
  use_map uses_;
};

op_desc recompute(const block& b, const activation& a) {
  const auto& writer = b.ops[a.writer];
  op_desc op;
  op.type = recompute_type;
  for (auto slot : {"X", "Scale", "Bias"})
    op.set_input(slot, writer.input(slot));
  for (auto slot : {"SavedMean", "SavedVariance"})
    op.set_input(slot, writer.output(slot));
  op.set_input("After", {a.after});
  op.set_output("Y", {again(a.name)});
  op.attributes = writer.attributes;
  op.attributes.set("op_role", std::int32_t{role_backward});
  op.attributes.erase("op_role_var");
  return op;
}

void read_again(op_desc& op, const std::string& name) {
  for (auto& slot : op.inputs)
    std::ranges::replace(slot.arguments, name, again(name));
}

} // namespace

bool has_activations_to_recompute(const program& p) {
  return std::ranges::any_of(p.main().ops, writes_activation);
}

program recompute_activations(program p, const std::set<std::string>& kept) {
  if (p.blocks.size() > 1)
    return p;
  auto& b = p.main();
  std::multimap<std::size_t, op_desc> made; // by position of the first reader
  for (auto& a : activation_finder{b, kept}.find()) {
    auto var = b.var(a.name);
    var.name = again(a.name);
    b.add_var(std::move(var));
    made.emplace(a.readers.front(), recompute(b, a));
    for (auto reader : a.readers)
      read_again(b.ops[reader], a.name);
  }
  std::vector<op_desc> ops;
  ops.reserve(b.ops.size() + made.size());
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    for (auto [m, end] = made.equal_range(i); m != end; ++m)
      ops.push_back(std::move(m->second));
    ops.push_back(std::move(b.ops[i]));
  }
  b.ops = std::move(ops);
  return p;
}

} // namespace troupe::graph
