// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/divided_state.hpp>

#include <troupe/graph/ssa/persistable_updates.hpp>

#include <algorithm>

namespace troupe::apps {

divided_state::divided_state(const scope& parameters) {
  for (auto& name : parameters.names())
    if (const auto* held = parameters.find(name);
        held->is_tensor() && held->as_tensor())
      names_.push_back(name);
}

void divided_state::note(const executor& exe, std::size_t first,
                         std::size_t own) {
  homes_.clear();
  if (!is_divided())
    return;
  for (auto& [name, by] : graph::updating_devices(exe.graph())) {
    const auto home = std::ranges::find_if(
      by, [&](auto d) { return d >= first && d < first + own; });
    homes_[std::string(name)] =
      home == by.end() ? std::nullopt : std::optional{*home - first};
  }
}

void divided_state::clear(scope& parameters) const {
  for (auto& name : names_)
    parameters.var(name).clear();
}

void divided_state::collect(scope& parameters) const {
  if (!is_divided())
    return;
  for (auto& [name, replica] : homes_)
    if (!replica)
      parameters.var(name).clear();
    else if (*replica > 0)
      parameters.var(name).set(
        parameters.replica(*replica).var(name).as_tensor());
  parameters.drop_replicas(); // other devices can have this state next
}

void divided_state::begin_again(const scope& first, scope& parameters) const {
  for (auto& name : names_)
    parameters.var(name).set(first.find(name)->as_tensor());
}

} // namespace troupe::apps
