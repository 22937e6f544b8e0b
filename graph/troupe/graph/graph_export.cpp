// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/graph_export.hpp>

#include <troupe/base/quoted_name.hpp>

#include <nlohmann/json.hpp>

#include <string_view>

namespace troupe::graph {

namespace {

using nlohmann::ordered_json;

std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (auto c : one_line(text)) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string_view type_of(const var_handle& v) {
  if (v.feed)
    return "feed";
  return v.persistable ? "persistable" : "temporary";
}

std::string dot_node(const ssa_graph& g, handle_id id) {
  auto shape = g.is_op(id) ? "box" : "ellipse";
  return "    h" + std::to_string(id) + " [shape=" + shape
         + ", label=" + dot_string(handle_name(g, id)) + "];\n";
}

std::string dot_cluster(const ssa_graph& g, std::size_t device) {
  auto number = std::to_string(device);
  std::string text = "  subgraph cluster_" + number + " {\n    label="
                     + dot_string(to_string(g.devices[device])) + ";\n";
  for (auto& op : g.ops)
    if (op.device == device)
      text += dot_node(g, op.id);
  for (auto& v : g.vars)
    if (v.device == device)
      text += dot_node(g, v.id);
  return text + "  }\n";
}

std::string dot_edge(const edge& e) {
  std::string attributes;
  std::string label;
  if (e.kind != edge_kind::data) {
    attributes += ", style=dashed";
    label = to_string(e.kind);
  }
  if (e.distance > 0) {
    attributes += ", color=blue, constraint=false";
    label += (label.empty() ? "+" : " +") + std::to_string(e.distance);
  }
  return "  h" + std::to_string(e.from) + " -> h" + std::to_string(e.to)
         + " [label=" + dot_string(label) + attributes + "];\n";
}

ordered_json json_op(const ssa_graph& g, const op_handle& op) {
  ordered_json handle{{"id", op.id},
                      {"kind", "op"},
                      {"type", op.desc->type},
                      {"name", handle_name(g, op.id)},
                      {"version", nullptr},
                      {"device", to_string(g.devices[op.device])},
                      {"stream", to_string(op.stream)}};
  if (op.only_in_updates)
    handle["only_in_updates"] = true;
  return handle;
}

ordered_json json_var(const ssa_graph& g, const var_handle& v) {
  return {{"id", v.id},           {"kind", "var"},
          {"type", type_of(v)},   {"name", v.name},
          {"version", v.version}, {"device", to_string(g.devices[v.device])},
          {"stream", nullptr}};
}

ordered_json json_edge(const edge& e) {
  return {{"from", e.from},
          {"to", e.to},
          {"kind", to_string(e.kind)},
          {"distance", e.distance}};
}

} // namespace

std::string to_dot(const ssa_graph& g) {
  std::string text = "digraph troupe {\n";
  for (std::size_t device = 0; device < g.devices.size(); ++device)
    text += dot_cluster(g, device);
  for (auto& e : g.edges)
    text += dot_edge(e);
  return text + "}\n";
}

std::string to_json(const ssa_graph& g) {
  auto handles = ordered_json::array();
  for (auto& op : g.ops)
    handles.push_back(json_op(g, op));
  for (auto& v : g.vars)
    handles.push_back(json_var(g, v));
  auto edges = ordered_json::array();
  for (auto& e : g.edges)
    edges.push_back(json_edge(e));
  ordered_json graph{{"handles", std::move(handles)},
                     {"edges", std::move(edges)}};
  return graph.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::graph
