// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/node_door.hpp>

#include <troupe/actors/caf/inside.hpp>

#include <caf/io/middleman.hpp>
#include <caf/io/network/multiplexer.hpp>
#include <caf/io/scribe.hpp>
#include <caf/scoped_actor.hpp>
#include <fcntl.h>

#include <set>
#include <string>
#include <utility>

namespace troupe::actors {

namespace {

/// Gives the socket to CAF.
caf::io::scribe_ptr scribe_of(caf::actor_system& system, descriptor socket) {
  return system.middleman().backend().new_scribe(socket.release());
}

descriptor copy_of(const descriptor& socket) {
  return descriptor{::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)};
}

} // namespace

void node_door::admit(passage come, std::uint64_t process,
                      std::uint16_t gate_port) {
  caf::strong_actor_ptr self;
  {
    std::lock_guard guard{link_.mutex};
    self = caf::actor_cast<caf::strong_actor_ptr>(link_.self);
    // If the number is taken, the process is told when it asks to join.
    link_.entered.emplace(process, copy_of(come.socket));
    link_.keep(std::move(come.tunnel));
  }
  post(connection_broker(system_), caf::publish_atom_v,
       scribe_of(system_, std::move(come.socket)), gate_port, std::move(self),
       std::set<std::string>{});
}

void node_door::close(std::uint16_t gate_port) {
  post(connection_broker(system_), caf::unpublish_atom_v,
       caf::actor_cast<caf::actor_addr>(link_.members->self()), gate_port);
  std::lock_guard guard{link_.mutex};
  link_.entered.clear();
}

caf::actor node_door::connect(passage come, const way_in& way,
                              time_point deadline) {
  {
    std::lock_guard guard{link_.mutex};
    link_.sockets.emplace(0, copy_of(come.socket));
    link_.keep(std::move(come.tunnel));
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
    deadline - std::chrono::steady_clock::now());
  caf::scoped_actor asking{system_};
  caf::strong_actor_ptr first;
  ask(asking, connection_broker(system_),
      std::max(left, std::chrono::milliseconds{1}), caf::connect_atom_v,
      scribe_of(system_, std::move(come.socket)), way.port)
    .receive([&](const caf::node_id&, caf::strong_actor_ptr& found,
                 const std::set<std::string>&) { first = std::move(found); },
             [](const caf::error&) {});
  if (!first)
    throw error(errc::peer_failure,
                "process 0 at " + way.text() + " does not answer");
  return caf::actor_cast<caf::actor>(first);
}

std::string node_door::join(const std::shared_ptr<node_state>& me,
                            const way_in& way, const node_options& options,
                            time_point deadline) {
  auto come = knock(way, link_.process, deadline, options.check);
  const auto first = connect(std::move(come.through), way, deadline);
  {
    std::lock_guard guard{link_.mutex};
    link_.nodes[0] = first;
  }
  link_.watch(me, 0, first);
  std::lock_guard guard{link_.mutex};
  link_.tell(first, join_atom_v, link_.process, link_.description);
  return come.own_address;
}

void node_door::wait(const node_options& options, time_point deadline) {
  constexpr std::chrono::milliseconds between_checks{20};
  const auto is_decided = [this] {
    return link_.now == node_state::stage::running || !link_.failure.empty();
  };
  {
    std::unique_lock guard{link_.mutex};
    while (!is_decided() && std::chrono::steady_clock::now() < deadline) {
      link_.changed.wait_for(guard, between_checks, is_decided);
      guard.unlock();
      if (options.check)
        options.check();
      guard.lock();
    }
    // A process may have done all its steps and left before this one looks:
    // these steps can still run here.
    if (link_.now == node_state::stage::running
        && (link_.failure.empty() || link_.first_without > 0))
      return;
  }
  // A reason that has been recorded meanwhile is kept.
  link_.lose(0, "after " + std::to_string(options.timeout_ms) + " ms "
                  + link_.missing());
  std::lock_guard guard{link_.mutex};
  throw error(link_.failure_code, link_.failure);
}

} // namespace troupe::actors
