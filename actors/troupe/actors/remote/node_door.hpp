// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/node_state.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::actors {

/// Connects the processes of a run through CAF. A socket is passed to CAF only
/// after its peer has sent the pass of the run.
class node_door {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Both arguments must outlive the door.
  node_door(caf::actor_system& system, node_state& link)
    : system_(system), link_(link) {}

  /// Process 0: connects another process that the gate at `gate_port` has
  /// admitted.
  void admit(passage come, std::uint64_t process, std::uint16_t gate_port);
  /// Process 0: new connections at that port no longer get an address from CAF.
  void close(std::uint16_t gate_port);
  /// The others: connects to process 0 and asks to join. Returns this
  /// process's own address, in figures. Throws what `knock` throws, and
  /// error(peer_failure) if process 0 does not answer.
  std::string join(const std::shared_ptr<node_state>& me, const way_in& way,
                   const node_options& options, time_point deadline);
  /// Waits until the run begins. Throws error(peer_failure) if it does not.
  void wait(const node_options& options, time_point deadline);

private:
  /// The node actor of process 0.
  caf::actor connect(passage come, const way_in& way, time_point deadline);

  caf::actor_system& system_;
  node_state& link_;
};

} // namespace troupe::actors
