// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../values.hpp"

#include <troupe/comm/engine/neighbours.hpp>

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace comm_test {

/// A process of a host, which a thread plays, and what it knows of the others.
struct met_neighbour {
  std::shared_ptr<comm::process_memory> memory =
    std::make_shared<comm::process_memory>();
  std::unique_ptr<comm::neighbours> others = {};
};

inline std::vector<met_neighbour> meet_neighbours(std::size_t count) {
  std::vector<met_neighbour> all(count);
  const auto path = socket_path();
  std::vector<std::jthread> threads;
  for (std::size_t p = 0; p < count; ++p)
    threads.emplace_back([&, p] {
      comm::shm_group_options at;
      at.path = path;
      at.process = p;
      at.processes = count;
      at.ranks = {p * 3};
      all[p].others = std::make_unique<comm::neighbours>(at, all[p].memory);
    });
  threads.clear(); // joins them
  return all;
}

} // namespace comm_test
