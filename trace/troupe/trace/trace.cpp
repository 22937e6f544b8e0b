// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/trace.hpp>

namespace troupe::trace {

const handle_info* process_trace::find(handle_id id) const noexcept {
  return id < graph.handles.size() ? &graph.handles[id] : nullptr;
}

std::string_view process_trace::name_of(handle_id id) const {
  const auto* found = find(id);
  return found ? std::string_view{found->name} : "start";
}

std::string process_trace::name_of_actor(actor_number which) const {
  return which < actors.size() ? full_name(actors[which]) : "nobody";
}

std::string_view process_trace::name_of_type(std::uint32_t type) const {
  return type < message_types.size() ? std::string_view{message_types[type]}
                                     : "unknown";
}

std::string full_name(const recorded_actor& actor) {
  auto name = actor.name + "#" + std::to_string(actor.id);
  return actor.node.empty() ? name : name + "@" + actor.node;
}

} // namespace troupe::trace
