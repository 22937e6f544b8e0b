// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/actor_graph.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/base/ids.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {

/// Ties the parts of one graph together that run in several processes.
///
/// Start-up: process 0 opens a gate (remote/gate.hpp); each other process comes
/// in with the pass of the run and sends a join message with the number of its
/// process, a description of the run as it sees it and the addresses of its
/// handles. When all have come, process 0 sends everybody the addresses of all,
/// closes the gate, hears from each that it knows them, and tells all to begin.
/// From then on readiness goes from actor to actor, with values where an edge
/// carries one.
///
/// Running: each process tells process 0 when its part of a step has ended, and
/// process 0 tells all when the step has, so that it ends everywhere and slots
/// are reused safely. Whoever is lost ends the run of all: process 0, to which
/// all are connected, tells the others.
///
/// Messages count if they come from the node actor that may send them, where
/// they are awaited, and with numbers that can be; all others are dropped.
class node_link {
public:
  /// What the executor wants to hear. Called on threads of the actor system,
  /// one call at a time, and on that of `leave`.
  struct listener {
    /// A step has ended in all processes, or there is nothing to wait for any
    /// more; each once, in order, behind this process's part. `failure` is
    /// empty or says why the step failed.
    std::function<void(step_id, const std::string& failure)> ended;
    /// A process is gone, once: no further step can run, and what others owe to
    /// steps under way will not come. Steps that have not ended then do by
    /// `ended`, with their part here.
    std::function<void(const std::string& why)> lost;
  };

  /// Connects and waits until all processes have.
  /// @param description of the run, see remote/run_description.hpp
  /// Throws error(peer_failure) after `node_options::timeout_ms`, on a refused
  /// connection, if a process is lost, or if descriptions differ, naming where;
  /// error(invalid_argument) for an address off loopback or a process number
  /// out of range.
  node_link(caf::actor_system& system, const node_options& options,
            std::string description, const graph::ssa_graph& graph,
            actor_graph& actors, listener listens);
  /// Leaves the run. Afterwards the listener is not called any more.
  ~node_link();

  /// This process's part of a step has ended.
  void part_ended(step_id step, const std::string& failure);
  /// Leaves the run, as if the others were lost; they hear that this process
  /// has left.
  void leave(const std::string& why);

private:
  class node_actor;
  struct state;
  struct door;

  std::shared_ptr<state> state_;
};

} // namespace troupe::actors
