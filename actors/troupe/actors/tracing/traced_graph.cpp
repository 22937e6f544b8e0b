// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/traced_graph.hpp>

#include <troupe/graph/program_text.hpp>

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace troupe::actors {

namespace {

std::string shape_of(const graph::block& declares, std::string_view name) {
  const auto* found = declares.find_var(std::string{name});
  return found ? to_string(found->dims) : std::string{};
}

/// A program file can have any value there.
std::string scope_of(const graph::op_desc& op) {
  const auto* const value = op.attributes.find("op_namescope");
  const auto* const scope = value ? std::get_if<std::string>(value) : nullptr;
  return scope && *scope != "/" ? *scope : std::string{};
}

std::string shapes_of(const graph::ssa_graph& g,
                      std::span<const handle_id> variables,
                      const graph::block& declares) {
  std::string text;
  for (auto id : variables) {
    if (!text.empty())
      text += "; ";
    text += shape_of(declares, g.var(id).name);
  }
  return text;
}

trace::handle_info info_of(const graph::ssa_graph& g, const graph::op_handle& o,
                           const graph::block& declares) {
  trace::handle_info h;
  h.name = handle_name(g, o.id);
  h.type = o.desc->type;
  h.is_op = true;
  h.is_collective = o.collective_index >= 0;
  h.device = o.device;
  h.stream = to_string(o.stream);
  h.scope = scope_of(*o.desc);
  h.shape = shapes_of(g, o.inputs, declares);
  h.results = shapes_of(g, o.outputs, declares);
  h.attributes = graph::attributes_text(o.desc->attributes);
  return h;
}

trace::handle_info info_of(const graph::ssa_graph& g,
                           const graph::var_handle& v,
                           const graph::block& declares) {
  trace::handle_info h;
  h.name = handle_name(g, v.id);
  h.type = v.name;
  h.device = v.device;
  h.shape = shape_of(declares, v.name);
  return h;
}

} // namespace

trace::graph_info
traced_graph(const graph::ssa_graph& g, const graph::block& declares,
             const std::vector<std::size_t>& process_of_device) {
  trace::graph_info info;
  for (auto device : g.devices)
    info.devices.push_back(to_string(device));
  info.process_of_device = process_of_device;
  for (auto& o : g.ops)
    info.handles.push_back(info_of(g, o, declares));
  for (auto& v : g.vars)
    info.handles.push_back(info_of(g, v, declares));
  for (auto& e : g.edges)
    info.edges.push_back({e.from, e.to, e.distance});
  return info;
}

} // namespace troupe::actors
