// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../values.hpp"
#include "gloo_group.hpp"
#include "memory_engine.hpp"

#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/shm/process_memory.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace comm_test {

/// The host of each process.
using host_map = std::vector<std::size_t>;

/// The options of a process on a host. Without `letter_bytes`, values of all
/// sizes are exchanged.
/// @param path the same for all processes of the group
inline comm::engine_group_options on_host(std::size_t host,
                                          const std::string& path) {
  comm::engine_group_options options;
  options.hosts = comm::host_group_options{
    host, path, std::make_shared<comm::process_memory>()};
  options.letter_bytes = 0;
  options.piece_bytes = std::size_t{64} << 10;
  return options;
}

/// Rank r is in process r modulo the number of processes.
inline std::vector<std::size_t>
ranks_of(std::size_t process, std::size_t processes, std::size_t ranks) {
  std::vector<std::size_t> own;
  for (auto r = process; r < ranks; r += processes)
    own.push_back(r);
  return own;
}

/// The ends of a group over memory, or over Gloo, that adds by host.
/// @param adds false: only parcels go through the memory of a host
inline std::vector<std::unique_ptr<comm::communicator>>
join_on_hosts(const host_map& hosts, std::size_t ranks,
              const std::shared_ptr<memory_hub>& hub, bool adds = true) {
  const auto path = socket_path();
  return join_on_threads(hosts.size(), ranks, [&](std::size_t p) {
    auto own = on_host(hosts[p], path);
    own.hosts->adds = adds;
    own.ranks = ranks_of(p, hosts.size(), ranks);
    return comm::join_engine_group(std::make_unique<memory_engine>(hub, p),
                                   own);
  });
}

inline std::vector<std::unique_ptr<comm::communicator>>
join_on_hosts(const host_map& hosts, std::size_t ranks, unsigned seed) {
  return join_on_hosts(hosts, ranks,
                       std::make_shared<memory_hub>(hosts.size(), seed));
}

inline std::vector<std::unique_ptr<comm::communicator>>
join_on_hosts_over_gloo(const host_map& hosts, std::size_t ranks) {
  const auto path = socket_path();
  const meeting_folder at;
  return join_on_threads(hosts.size(), ranks, [&](std::size_t p) {
    comm::gloo_group_options own;
    static_cast<comm::engine_group_options&>(own) = on_host(hosts[p], path);
    own.store = comm::make_folder_store(at.path());
    own.process = p;
    own.processes = hosts.size();
    own.ranks = ranks_of(p, hosts.size(), ranks);
    return comm::join_gloo_group(own);
  });
}

} // namespace comm_test
