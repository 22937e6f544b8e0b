// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/graph_rewriter.hpp>

#include <utility>

namespace troupe::graph {

graph_rewriter::graph_rewriter(const ssa_graph& of)
  : old_(of), sources_(std::make_shared<handle_sources>()) {
  made_.devices = of.devices;
  made_.vars = of.vars;
  made_.places = of.places;
  made_.rank_collectives = of.rank_collectives;
  made_.num_storages = of.num_storages;
  sources_->described = of.sources->described;
  sources_->before = of.sources;
  for (auto& v : made_.vars)
    v.generator = no_handle;
}

handle_id graph_rewriter::add_op(op_handle op,
                                 std::span<const var_index> inputs,
                                 std::span<const var_index> outputs) {
  op.id = static_cast<handle_id>(made_.ops.size());
  auto& all = sources_->arguments;
  ranges_.push_back({all.size(), inputs.size()});
  all.insert(all.end(), inputs.begin(), inputs.end());
  all.insert(all.end(), outputs.begin(), outputs.end());
  for (auto var : outputs)
    made_.vars[var].generator = op.id;
  made_.ops.push_back(op);
  return op.id;
}

ssa_graph graph_rewriter::finish() {
  const auto first_var = static_cast<handle_id>(made_.ops.size());
  for (auto& argument : sources_->arguments)
    argument += first_var;
  for (std::size_t i = 0; i < made_.vars.size(); ++i)
    made_.vars[i].id = first_var + static_cast<handle_id>(i);
  const std::span<const handle_id> all{sources_->arguments};
  for (std::size_t i = 0; i < made_.ops.size(); ++i) {
    const auto [first, inputs] = ranges_[i];
    const auto end = i + 1 < ranges_.size() ? ranges_[i + 1].first : all.size();
    made_.ops[i].inputs = all.subspan(first, inputs);
    made_.ops[i].outputs = all.subspan(first + inputs, end - first - inputs);
  }
  made_.sources = std::move(sources_);
  return std::move(made_);
}

} // namespace troupe::graph
