// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/delayed_inputs.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>
#include <troupe/graph/ssa/storage_accesses.hpp>

#include <algorithm>
#include <string>

namespace troupe::graph {

namespace {

[[noreturn]] void refuse(const ssa_graph& g, const delayed_input& d,
                         const std::string& why) {
  const auto& op = g.op(d.op);
  const auto& v = g.var(op.inputs[d.input]);
  error_context where;
  where.op = handle_name(g, d.op);
  where.op_type = op.desc->type;
  where.variable = v.name;
  where.device = to_string(g.devices[v.device]);
  where.call_stack = op.desc->call_stack();
  throw error{errc::graph_invalid, "an input of an earlier step " + why,
              std::move(where)};
}

void check_place(const ssa_graph& g, const delayed_input& d) {
  if (!g.is_op(d.op) || d.input >= g.op(d.op).inputs.size() || d.distance == 0)
    throw error{errc::invalid_argument,
                "no input " + std::to_string(d.input) + " of "
                  + handle_name(g, d.op) + " can be "
                  + std::to_string(d.distance) + " steps old"};
  const auto kind = g.op(d.op).kind;
  if (kind != op_kind::computation)
    refuse(g, d,
           "must be of an op of the program, not of a "
             + std::string{to_string(kind)});
}

/// The storage of an earlier step holds only the last version of that step.
void check_variables(const ssa_graph& g) {
  for (auto& storage : access_list{g})
    for (auto& v : storage.versions)
      for (auto& reader : v.delayed_readers) {
        const auto& inputs = g.op(reader.op).inputs;
        const auto input = std::ranges::find(inputs, v.var) - inputs.begin();
        const delayed_input d{reader.op, static_cast<std::uint32_t>(input),
                              reader.distance};
        if (storage.persistable)
          refuse(g, d, "must be of a temporary, not of a persistable variable");
        if (v.var != storage.versions.back().var)
          refuse(g, d, "is overwritten in that step");
      }
}

} // namespace

// In op order, writers come before readers, except for delayed inputs. Each
// round follows chains over one more of them. A cycle has no largest sum; the
// rounds then end with a sum in which each delayed input has counted.
std::uint32_t steps_without_past(const ssa_graph& g) {
  if (g.delayed_inputs.empty())
    return 0;
  std::vector<std::uint32_t> of(g.ops.size());
  bool changes = true;
  for (std::size_t round = 0; changes && round <= g.delayed_inputs.size();
       ++round) {
    changes = false;
    auto received = g.transfers.begin();
    for (auto& o : g.ops) {
      auto sum = of[o.id];
      for (std::size_t i = 0; i < o.inputs.size(); ++i)
        if (const auto writer = g.var(o.inputs[i]).generator;
            writer != no_handle)
          sum = std::max(sum, of[writer] + g.distance_of(o.id, i));
      if (o.kind == op_kind::recv)
        sum = std::max(sum, of[(received++)->send]);
      changes |= sum != of[o.id];
      of[o.id] = sum;
    }
  }
  return *std::ranges::max_element(of);
}

ssa_graph delay_inputs(ssa_graph g, std::span<const delayed_input> inputs) {
  for (auto& d : inputs)
    check_place(g, d);
  g.delayed_inputs.insert(g.delayed_inputs.end(), inputs.begin(), inputs.end());
  std::ranges::sort(g.delayed_inputs);
  const auto same_place = [](const delayed_input& a, const delayed_input& b) {
    return a.op == b.op && a.input == b.input;
  };
  if (const auto twice =
        std::ranges::adjacent_find(g.delayed_inputs, same_place);
      twice != g.delayed_inputs.end())
    throw error{errc::invalid_argument, "input " + std::to_string(twice->input)
                                          + " of " + handle_name(g, twice->op)
                                          + " is delayed twice"};
  check_variables(g);
  auto edges = derive_edges(g);
  std::ranges::copy_if(g.edges, std::back_inserter(edges), [](const edge& e) {
    return e.kind == edge_kind::order;
  });
  merge_edges(edges);
  g.edges = std::move(edges);
  return g;
}

} // namespace troupe::graph
