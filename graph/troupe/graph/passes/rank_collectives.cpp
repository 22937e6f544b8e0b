// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/rank_collectives.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/graph_rewriter.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

using var_index = graph_rewriter::var_index;

class rank_maker {
public:
  explicit rank_maker(const ssa_graph& g)
    : old_(g), rewriter_(g), new_id_(g.ops.size(), no_handle),
      first_rank_(g.ops.size(), no_handle) {
    rewriter_.made().rank_collectives = true;
  }

  ssa_graph make();

private:
  std::vector<var_index> indices(std::span<const handle_id> vars) const;
  std::vector<var_index> on_device(std::span<const handle_id> vars,
                                   std::uint32_t device) const;
  std::vector<std::string> names(std::span<const var_index> vars) const;
  void add_ranks(const op_handle& joint);
  handle_id from_on(handle_id old, std::uint32_t device) const;
  void keep_orders(ssa_graph& g) const;

  const ssa_graph& old_;
  graph_rewriter rewriter_;
  std::vector<handle_id> new_id_; // by old op; none for a collective
  // by old op: the rank on the first device, which the others follow
  std::vector<handle_id> first_rank_;
};

std::vector<var_index>
rank_maker::indices(std::span<const handle_id> vars) const {
  std::vector<var_index> result;
  for (auto id : vars)
    result.push_back(rewriter_.index_of(id));
  return result;
}

std::vector<var_index> rank_maker::on_device(std::span<const handle_id> vars,
                                             std::uint32_t device) const {
  auto result = indices(vars);
  std::erase_if(result,
                [&](var_index var) { return old_.vars[var].device != device; });
  return result;
}

std::vector<std::string>
rank_maker::names(std::span<const var_index> vars) const {
  std::vector<std::string> result;
  for (auto var : vars)
    result.emplace_back(old_.vars[var].name);
  return result;
}

void rank_maker::add_ranks(const op_handle& joint) {
  for (std::uint32_t device = 0; device < old_.devices.size(); ++device) {
    const auto inputs = on_device(joint.inputs, device);
    const auto outputs = on_device(joint.outputs, device);
    op_desc desc;
    desc.type = joint.desc->type;
    desc.set_input("X", names(inputs));
    desc.set_output("Out", names(outputs));
    auto rank = joint;
    rank.device = device;
    rank.desc = rewriter_.describe(std::move(desc));
    const auto id = rewriter_.add_op(rank, inputs, outputs);
    if (device == 0)
      first_rank_[joint.id] = id;
  }
}

/// What an op on `device` waits for if it waited for `old`: of a collective,
/// the rank on its device, which is done when all are.
handle_id rank_maker::from_on(handle_id old, std::uint32_t device) const {
  return new_id_[old] != no_handle ? new_id_[old] : first_rank_[old] + device;
}

void rank_maker::keep_orders(ssa_graph& g) const {
  for (auto& e : old_.edges) {
    if (e.kind != edge_kind::order)
      continue;
    const auto to = new_id_[e.to];
    if (to != no_handle)
      g.edges.push_back(
        {from_on(e.from, old_.op(e.to).device), to, e.kind, e.distance});
    else if (new_id_[e.from] != no_handle) // else both are collectives
      throw error{errc::graph_invalid, "an order edge leads from "
                                         + handle_name(old_, e.from) + " to "
                                         + handle_name(old_, e.to)
                                         + ", which is a collective"};
  }
}

ssa_graph rank_maker::make() {
  for (auto& o : old_.ops)
    if (o.collective_index >= 0)
      add_ranks(o);
    else
      new_id_[o.id] =
        rewriter_.add_op(o, indices(o.inputs), indices(o.outputs));
  auto g = rewriter_.finish();
  for (auto d : old_.delayed_inputs) {
    d.op = new_id_[d.op];
    g.delayed_inputs.push_back(d);
  }
  g.edges = derive_edges(g);
  keep_orders(g);
  merge_edges(g.edges);
  return g;
}

} // namespace

ssa_graph make_rank_collectives(ssa_graph g) {
  if (!g.places.empty() || g.rank_collectives)
    throw error{errc::invalid_argument,
                g.places.empty()
                  ? "collectives have a handle per device already"
                  : "the graph is split over places"};
  return rank_maker{g}.make();
}

} // namespace troupe::graph
