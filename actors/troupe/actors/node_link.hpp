// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/actor_graph.hpp>
#include <troupe/actors/executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {

/// Ties the parts of one graph together that run in several processes.
///
/// Start-up: process 0 listens; each other process sends it a join message
/// with the number of its process, a digest of its graph and the addresses of
/// its handles; when all have come, process 0 sends everybody the addresses of
/// all. From then on readiness goes from actor to actor, with values where an
/// edge carries one.
///
/// Running: a process tells the others when its part of a step has ended, so
/// that a step ends everywhere at once and slots are reused safely. A process
/// that is lost ends the run of all with error(peer_failure).
class node_link {
public:
  /// What the executor wants to hear. Called on threads of the actor system.
  struct listener {
    /// A process's part of the step has ended; `failure` is empty or says why
    /// it failed.
    std::function<void(std::size_t process, step_id,
                       const std::string& failure)>
      part_ended;
    /// A process is gone.
    std::function<void(std::size_t process, const std::string& why)> lost;
  };

  /// Connects and waits until all processes have. Throws error(peer_failure)
  /// after `node_options::timeout_ms`, on a refused connection, or if the
  /// processes' graphs differ; error(invalid_argument) for an address off
  /// loopback or a process number out of range.
  node_link(caf::actor_system& system, const node_options& options,
            const graph::ssa_graph& graph, actor_graph& actors,
            listener listens);
  /// Afterwards the listener is not called any more.
  ~node_link();

  /// Tells the others that this process's part of a step has ended.
  void tell_part_ended(step_id step, const std::string& failure);
  /// Processes beside this one.
  std::uint32_t others() const noexcept;

private:
  class node_actor;
  struct state;
  void connect(const node_options& options);
  void close() noexcept;
  void listen(const node_options& options);
  void join(const node_options& options);

  std::shared_ptr<state> state_;
};

/// A digest of handles and edges: equal for equal graphs on every machine.
std::uint64_t digest(const graph::ssa_graph& g);

} // namespace troupe::actors
