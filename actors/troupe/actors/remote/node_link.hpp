// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/remote/run_members.hpp>
#include <troupe/base/ids.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

struct node_state;
struct way_in;

/// Connects the parts of one graph that run in several processes.
///
/// Start-up: process 0 opens a gate (remote/gate.hpp). Each other process
/// connects with the pass of the run and sends a join message with its process
/// number and its description of the run. When all have joined, process 0 sends
/// the addresses of all processes to each of them and closes the gate. After
/// each has confirmed, it tells all to begin.
///
/// Running: values travel between ranks of the group (group_wire.hpp), not
/// here. A step ends in each process on its own. If it fails, its number is
/// sent to all processes. The loss of a process ends the run in
/// all processes: process 0, to which all are connected, notifies the others. A
/// process that leaves reports how many steps it has run; these remain valid.
///
/// A message is accepted only if it comes from the right node actor, when it is
/// expected, and with valid numbers. All others are dropped.
class node_link final {
public:
  /// Callbacks of the executor. Called on threads of the actor system, one at a
  /// time.
  struct listener {
    /// A step has failed in another process.
    std::function<void(step_id, const error& reason)> failed;
    /// A process is gone: no step from `first_without` on can run.
    std::function<void(step_id first_without, const error& reason)> gone;
  };

  /// Connects and waits until all processes have connected.
  /// @param description of the run, see remote/run_description.hpp
  ///
  /// Throws error(peer_failure) after `node_options::timeout_ms`, on a refused
  /// connection, if a process is lost, or if descriptions differ. The last
  /// error names the first difference.
  node_link(caf::actor_system& system, const node_options& options,
            std::string description, listener listens);
  node_link(const node_link&) = delete;
  node_link& operator=(const node_link&) = delete;
  /// Afterwards the listener is not called.
  ~node_link();

  const std::shared_ptr<run_members>& members() const noexcept;

  /// Called when a step has ended here: once per step, in order.
  void ended(step_id step);
  /// Notifies the others that a step has failed here.
  void tell_failed(step_id step, const error& reason);
  /// Notifies the others that all steps before `first_without` have ended here
  /// and that no other step will run. Waits briefly until they no longer need
  /// this process.
  void leave(step_id first_without) noexcept;

  /// Ends the run because a process is lost. From then on no step can run, not
  /// even one that could after others had left. False if the process itself has
  /// left before.
  bool is_lost(std::size_t process, const std::string& why);

  /// Throws error(peer_failure) if the run has ended because a process is lost
  /// or has left.
  void require_all() const;

  /// The port of process 0.
  std::uint16_t port() const noexcept { return port_; }
  /// The address of this process on the network of the run, in figures.
  const std::string& own_address() const noexcept { return own_address_; }

  ///@{
  /// Texts by which processes tell each other how they can be reached:
  /// `publish` sends one to all others, `find` returns one that has arrived.
  void publish(const std::string& key, const std::string& value);
  std::optional<std::string> find_published(const std::string& key) const;
  ///@}

  ///@{
  /// See `executor::send_note`. Any thread.
  void send_note(std::size_t process, const std::string& text);
  std::vector<process_note> take_notes();
  ///@}

private:
  void let_others_in(const node_options& options, way_in way,
                     std::chrono::steady_clock::time_point deadline);
  void join(const node_options& options, way_in way,
            std::chrono::steady_clock::time_point deadline);

  std::shared_ptr<node_state> state_;
  std::uint16_t port_;
  std::string own_address_ = "127.0.0.1";
};

/// Throws error(invalid_argument) for an address of one host that is not
/// loopback, a process number out of range, if the number of entries differs
/// from that of devices, or if `group_engine` and `host_network` do not fit.
void check_nodes(const node_options& options, std::size_t devices);

} // namespace troupe::actors
