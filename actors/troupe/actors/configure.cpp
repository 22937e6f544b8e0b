// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/configure.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/messages.hpp>
#include <troupe/actors/remote/node_messages.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/threads.hpp>

#include <algorithm>

namespace troupe {

std::size_t worker_count(int threads) {
  const auto cores = usable_cores();
  return threads <= 0 ? cores
                      : std::min(cores, static_cast<std::size_t>(threads));
}

void init_message_types() {
  actors::init_types_of_caf();
  actors::register_types<caf::id_block::troupe_handles>();
  actors::register_types<caf::id_block::troupe_nodes>();
}

void configure(caf::actor_system_config& cfg, int threads) {
  const auto count = worker_count(threads);
  require_system_threads(count);
  init_message_types();
  actors::configure_scheduler(cfg, count);
}

std::unique_ptr<caf::actor_system>
make_actor_system(caf::actor_system_config& cfg, int threads) {
  configure(cfg, threads);
  return actors::make_scheduled_system(cfg);
}

void require_system_threads(std::size_t workers) {
  require_threads(workers + actors::threads_of_caf());
}

} // namespace troupe
