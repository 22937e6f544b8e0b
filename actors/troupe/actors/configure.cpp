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

namespace {

actors::scheduling for_application(int threads) {
  return {.workers = worker_count(threads), .with_stand_in = true};
}

} // namespace

void configure(caf::actor_system_config& cfg, int threads) {
  const auto how = for_application(threads);
  require_system_threads(how.workers + 1);
  init_message_types();
  actors::configure_scheduler(cfg, how);
}

std::unique_ptr<caf::actor_system>
make_actor_system(caf::actor_system_config& cfg, int threads) {
  configure(cfg, threads);
  return actors::make_scheduled_system(cfg, for_application(threads));
}

void require_system_threads(std::size_t workers) {
  require_threads(workers + actors::threads_of_caf());
}

} // namespace troupe
