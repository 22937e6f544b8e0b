// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/state_gathering.hpp>

#include <troupe/actors/remote/calls_in_flight.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/graph/ssa/persistable_updates.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

namespace troupe::actors {

namespace {

/// Sends `name` from device `home` to the first device of process 0. Each
/// device of this process takes part.
void send_to_first(std::string_view name, std::size_t home,
                   std::size_t receiver, const placement& where,
                   scope& parameters, collective_ranks& ranks) {
  std::vector<comm::rank_value> values(where.process_of_device.size());
  calls_in_flight calls;
  for (std::size_t d = 0; d < values.size(); ++d) {
    if (!where.is_here(d))
      continue;
    values[d].name = name;
    if (d == home)
      values[d].in = &parameters.replica(where.replica_of(d)).var(name);
    if (d == receiver)
      values[d].out = &parameters.var(name);
    calls.start(ranks.of(d),
                {comm::collective_kind::broadcast, home, {&values[d], 1}});
  }
  calls.wait();
}

} // namespace

void drop_state_of_others(const graph::ssa_graph& g, const placement& where,
                          scope& parameters) {
  std::set<std::string_view> here;
  for (auto& v : g.vars)
    if (v.persistable && where.is_here(v.device))
      here.insert(v.name);
  for (auto& [name, by] : graph::updating_devices(g))
    if (auto* held = parameters.find(name); held && !here.contains(name))
      held->clear();
}

void gather_state(const graph::ssa_graph& g, const placement& where,
                  scope& parameters, collective_ranks& ranks) {
  const auto& processes = where.process_of_device;
  const auto receiver = std::ranges::find(processes, std::size_t{0});
  if (receiver == processes.end())
    return;
  const auto is_in_first = [&](std::size_t d) { return processes[d] == 0; };
  std::uint64_t calls = 0;
  for (auto& [name, by] : graph::updating_devices(g)) {
    if (std::ranges::any_of(by, is_in_first))
      continue;
    ++calls;
    send_to_first(name, *by.begin(),
                  static_cast<std::size_t>(receiver - processes.begin()), where,
                  parameters, ranks);
  }
  ranks.made_between_steps(calls);
}

} // namespace troupe::actors
