// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/handle_groups.hpp>

#include <map>
#include <string_view>
#include <tuple>

namespace troupe::dashboard {

namespace {

constexpr std::string_view gradient = "@GRAD";

std::string_view layer_of(std::string_view variable) {
  return variable.substr(0, variable.find_first_of(".@"));
}

/// "/encoder/fc/" as the name of a layer.
std::string_view layer_of_scope(std::string_view scope) {
  while (scope.starts_with('/'))
    scope.remove_prefix(1);
  while (scope.ends_with('/'))
    scope.remove_suffix(1);
  return scope;
}

bool is_gradient(std::string_view variable) {
  return variable.find(gradient) != std::string_view::npos;
}

/// What the variables around an op say of it.
struct neighbours {
  std::string_view input, output; ///< the first ones; empty: none
  bool reads_gradient = false;
  bool writes_gradient = false;
};

std::vector<neighbours> neighbours_of(const trace::graph_info& graph) {
  std::vector<neighbours> found(graph.handles.size());
  for (const auto& e : graph.edges) {
    const auto& from = graph.handles[e.from];
    const auto& to = graph.handles[e.to];
    if (from.is_op == to.is_op)
      continue;
    if (from.is_op) {
      auto& op = found[e.from];
      if (op.output.empty())
        op.output = to.type;
      op.writes_gradient |= is_gradient(to.type);
    } else {
      auto& op = found[e.to];
      if (op.input.empty())
        op.input = from.type;
      op.reads_gradient |= is_gradient(from.type);
    }
  }
  return found;
}

step_phase phase_of(const neighbours& op) {
  if (op.writes_gradient)
    return step_phase::backward;
  return op.reads_gradient ? step_phase::update : step_phase::forward;
}

/// By variable without "@GRAD": the scope of the forward op that writes it, or
/// else of the first that reads it.
std::map<std::string_view, std::string_view>
scopes_of_variables(const trace::graph_info& graph,
                    const std::vector<neighbours>& around) {
  std::map<std::string_view, std::string_view> found;
  const auto note = [&](handle_id op, handle_id variable) {
    const auto& by = graph.handles[op];
    if (by.is_op && !graph.handles[variable].is_op && !by.scope.empty()
        && phase_of(around[op]) == step_phase::forward)
      found.try_emplace(graph.handles[variable].type, layer_of_scope(by.scope));
  };
  for (const auto& e : graph.edges)
    note(e.from, e.to);
  for (const auto& e : graph.edges)
    note(e.to, e.from);
  return found;
}

} // namespace

std::string handle_group::name() const {
  switch (phase) {
  case step_phase::backward: return layer + " backward";
  case step_phase::update: return layer + " update";
  default: return layer;
  }
}

std::vector<handle_group> group_handles(const trace::graph_info& graph) {
  using key = std::tuple<std::uint32_t, std::string, step_phase>;
  std::map<key, std::size_t> places;
  std::vector<handle_group> groups;
  const auto around = neighbours_of(graph);
  // The phase of an op also holds for what it writes.
  std::vector<step_phase> phases(graph.handles.size(), step_phase::forward);
  for (handle_id id = 0; id < phases.size(); ++id)
    if (graph.handles[id].is_op)
      phases[id] = phase_of(around[id]);
  for (const auto& e : graph.edges)
    if (graph.handles[e.from].is_op && !graph.handles[e.to].is_op)
      phases[e.to] = phases[e.from];
  const auto scopes = scopes_of_variables(graph, around);
  for (handle_id id = 0; id < phases.size(); ++id) {
    const auto& h = graph.handles[id];
    const auto variable = !h.is_op ? std::string_view{h.type}
                          : !around[id].output.empty() ? around[id].output
                                                       : around[id].input;
    const auto scope = scopes.find(variable.substr(0, variable.find('@')));
    std::string layer{h.is_op && phases[id] != step_phase::update
                          && !h.scope.empty()
                        ? layer_of_scope(h.scope)
                      : scope != scopes.end() ? scope->second
                                              : layer_of(variable)};
    if (layer.empty())
      layer = h.type;
    const auto [place, is_new] =
      places.try_emplace(key{h.device, layer, phases[id]}, groups.size());
    if (is_new)
      groups.push_back({layer, phases[id], h.device, {}});
    groups[place->second].handles.push_back(id);
  }
  return groups;
}

} // namespace troupe::dashboard
