// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/placement.hpp>
#include <troupe/actors/remote/group_wire.hpp>
#include <troupe/actors/remote/node_link.hpp>
#include <troupe/actors/remote/peer_watch.hpp>
#include <troupe/comm/shm/process_memory.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {
class job_queue;
class recorder;
} // namespace troupe

namespace troupe::actors {

class actor_graph;
class collective_ranks;
class step_failures;
class transport;

/// This process's part in a run over several processes: its connection to the
/// others, its ranks' group, and the watch over the others.
///
/// Thread rule: the executor's thread; `step_ended` the thread that ends a
/// step.
class process_run {
public:
  /// All that is pointed to outlives the object.
  struct parts {
    caf::actor_system* system;
    const executor_options* options; ///< with `nodes`
    const std::string* loss;         ///< its name
    const graph::ssa_graph* graph;
    scope* parameters;
    actor_graph* actors;
    step_failures* failures;
    transport* transfers; ///< null if the graph has none
    job_queue* queue;
    recorder* trace;
    /// Memory that other processes map; null in a dry run, which has no group.
    std::shared_ptr<comm::process_memory> memory;
    placement where;
    /// Number of steps that have ended here. Any thread.
    std::function<std::uint64_t()> steps_ended;
    /// Whether somebody holds up the next step. Any thread.
    std::function<bool()> is_paused;
  };

  /// Connects to the other processes and waits for them. Throws what
  /// `node_link` and `join_run_group` throw.
  explicit process_run(parts p);

  /// Tells the others.
  /// @param failure null if the step has not failed
  void step_ended(step_id step, const error* failure);
  node_link& link() const noexcept { return *link_; }
  /// Leaves the run after so many steps. Afterwards nothing that the parts
  /// refer to is called any more.
  void leave(step_id steps);
  /// Null if the graph has no collectives, or in a dry run.
  collective_ranks* ranks() const;

private:
  void connect_transfers();
  void is_gone(step_id first_without, const error& reason);
  void watch_others();
  std::string activity() const;
  void leave_group(step_id steps);

  parts parts_;
  std::unique_ptr<node_link> link_;
  std::optional<group_wire> wire_;
  std::optional<peer_watch> watch_;
};

} // namespace troupe::actors
