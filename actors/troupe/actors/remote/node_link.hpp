// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/remote/run_members.hpp>
#include <troupe/actors/remote/transport.hpp>
#include <troupe/base/ids.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {

struct node_state;

/// Ties the parts of one graph together that run in several processes.
///
/// Start-up: process 0 opens a gate (remote/gate.hpp); each other process comes
/// in with the pass of the run and sends a join message with the number of its
/// process and a description of the run as it sees it. When all have come,
/// process 0 sends everybody the addresses of all, closes the gate, hears from
/// each that it knows them, and tells all to begin.
///
/// Running: values go along the graph's channels, and back goes that they were
/// taken. A step ends where it runs; that it has failed goes to all, with its
/// number. Whoever is lost ends the run of all: process 0, to which all are
/// connected, tells the others. One that leaves says how many steps it has run;
/// those stand.
///
/// Messages count if they come from the node actor that may send them, where
/// they are awaited, and with numbers that can be; all others are dropped. A
/// member that sends what is not due is lost.
class node_link final : public wire {
public:
  /// What the executor wants to hear. Called on threads of the actor system,
  /// one call at a time.
  struct listener {
    /// A step has failed in another process.
    std::function<void(step_id, const error& reason)> failed;
    /// A process is gone: no step from `first_without` on can run.
    std::function<void(step_id first_without, const error& reason)> gone;
  };

  /// Connects and waits until all processes have.
  /// @param description of the run, see remote/run_description.hpp
  /// @param ends of the graph's channels; outlives the link, as the graph does;
  ///   null if it has none
  /// Throws error(peer_failure) after `node_options::timeout_ms`, on a refused
  /// connection, if a process is lost, or if descriptions differ, naming where.
  node_link(caf::actor_system& system, const node_options& options,
            std::string description, const graph::ssa_graph& graph,
            transport* ends, listener listens);
  /// Afterwards neither the listener is called any more, nor `ends`.
  ~node_link() override;

  const std::shared_ptr<run_members>& members() const noexcept;

  /// A step has ended here; each, in their order.
  void ended(step_id step);
  /// Tells the others that a step has failed here.
  void tell_failed(step_id step, const error& reason);
  /// Tells the others that all steps before `first_without` have ended here and
  /// no other will run, and waits for a moment until they can do without this
  /// process.
  void leave(step_id first_without) noexcept;

  void send(std::uint32_t channel, step_id step,
            transfer_content content) override;
  void tell_taken(std::uint32_t channel, step_id step) override;

private:
  std::shared_ptr<node_state> state_;
};

/// Throws error(invalid_argument) for an address off loopback, a process number
/// out of range, or if there is not one process per device.
void check_nodes(const node_options& options, std::size_t devices);

} // namespace troupe::actors
