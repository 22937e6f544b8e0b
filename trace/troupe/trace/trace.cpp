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

} // namespace troupe::trace
