// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa_graph.hpp>

#include <algorithm>
#include <set>

namespace troupe::graph {

std::string_view to_string(op_kind kind) noexcept {
  switch (kind) {
  case op_kind::computation: return "computation";
  case op_kind::scale_loss_grad: return "scale_loss_grad";
  case op_kind::all_reduce: return "all_reduce";
  case op_kind::reduce: return "reduce";
  case op_kind::broadcast: return "broadcast";
  case op_kind::fetch: return "fetch";
  case op_kind::send: return "send";
  case op_kind::recv: return "recv";
  case op_kind::count_samples: return "count_samples";
  case op_kind::gather_losses: return "gather_losses";
  }
  return "unknown";
}

std::string_view to_string(stream_kind kind) noexcept {
  switch (kind) {
  case stream_kind::compute: return "compute";
  case stream_kind::collective: return "collective";
  case stream_kind::fetch: return "fetch";
  case stream_kind::gradient: return "gradient";
  }
  return "unknown";
}

std::string_view to_string(edge_kind kind) noexcept {
  switch (kind) {
  case edge_kind::data: return "data";
  case edge_kind::write_after_read: return "write_after_read";
  case edge_kind::write_after_write: return "write_after_write";
  case edge_kind::order: return "order";
  case edge_kind::transfer: return "transfer";
  }
  return "unknown";
}

std::uint32_t ssa_graph::max_distance() const noexcept {
  std::uint32_t result = 1;
  for (auto& e : edges)
    result = std::max(result, e.distance);
  return result;
}

std::uint32_t ssa_graph::distance_of(handle_id op,
                                     std::size_t input) const noexcept {
  if (delayed_inputs.empty())
    return 0;
  const auto found = std::ranges::lower_bound(
    delayed_inputs, delayed_input{op, static_cast<std::uint32_t>(input), 0});
  return found != delayed_inputs.end() && found->op == op
             && found->input == input
           ? found->distance
           : 0;
}

handle_id ssa_graph::latest(std::string_view name, std::size_t device) const {
  const var_handle* last = nullptr;
  for (auto& v : vars)
    if (v.device == device && v.name == name
        && (last == nullptr || v.version > last->version))
      last = &v;
  return last == nullptr ? no_handle : last->id;
}

std::vector<std::string> feed_names(const ssa_graph& g) {
  std::set<std::string_view> fed;
  for (auto& v : g.vars)
    if (v.feed)
      fed.insert(v.name);
  return {fed.begin(), fed.end()};
}

std::string handle_name(const ssa_graph& g, handle_id id) {
  if (id >= g.size())
    return "unknown#" + std::to_string(id);
  auto at = [&g](std::size_t device) {
    return "@" + to_string(g.devices[device]);
  };
  if (!g.is_op(id)) {
    auto& v = g.var(id);
    return std::string{v.name} + ":v" + std::to_string(v.version)
           + at(v.device);
  }
  auto& o = g.op(id);
  return o.desc->type + "#" + std::to_string(id) + at(o.device);
}

} // namespace troupe::graph
