// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/own_system.hpp>

#include <troupe/actors/configure.hpp>

#include <caf/io/middleman.hpp>

#include <cstddef>

namespace troupe::actors {

own_system::own_system(int threads, bool over_processes) {
  if (over_processes) {
    constexpr std::size_t of_middleman = 2;
    config.load<caf::io::middleman>();
    require_system_threads(worker_count(threads) + of_middleman);
  }
  system = make_actor_system(config, threads);
}

} // namespace troupe::actors
