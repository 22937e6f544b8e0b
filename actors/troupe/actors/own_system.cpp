// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/own_system.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/configure.hpp>

#include <caf/io/middleman.hpp>

#include <cstddef>

namespace troupe::actors {

own_system::own_system(int threads, bool over_processes) {
  // No actors of an application, so no stand-in for them.
  const scheduling how{.workers = worker_count(threads)};
  const std::size_t of_middleman = over_processes ? 2 : 0;
  if (over_processes)
    config.load<caf::io::middleman>();
  require_system_threads(how.workers + of_middleman);
  init_message_types();
  configure_scheduler(config, how);
  system = make_scheduled_system(config, how);
}

} // namespace troupe::actors
