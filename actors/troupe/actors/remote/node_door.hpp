// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/node_state.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace troupe::actors {

/// Brings the processes of a run together over CAF's connections: a socket goes
/// to CAF when it has shown the pass of the run.
class node_door {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Both outlive the door.
  node_door(caf::actor_system& system, node_state& link)
    : system_(system), link_(link) {}

  /// Process 0: lets another process in, which came through the gate at a port.
  void admit(descriptor socket, std::uint16_t gate_port);
  /// Process 0: from now on CAF gives newcomers no address at that port.
  void close(std::uint16_t gate_port);
  /// The others: connects to process 0 and asks to join. Throws
  /// error(peer_failure) if it does not answer.
  void join(const std::shared_ptr<node_state>& me, const node_options& options,
            time_point deadline);
  /// Waits until the run begins. Throws error(peer_failure) if it does not.
  void wait(const node_options& options, time_point deadline);

private:
  /// The node actor of process 0.
  caf::actor connect(descriptor socket, const node_options& options,
                     time_point deadline);

  caf::actor_system& system_;
  node_state& link_;
};

} // namespace troupe::actors
