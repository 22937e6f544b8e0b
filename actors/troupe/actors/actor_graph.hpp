// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/disturbance.hpp>
#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/stream_actor.hpp>
#include <troupe/actors/engine/wait_finder.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/plan/wiring_plan.hpp>
#include <troupe/actors/tasks/graph_tasks.hpp>
#include <troupe/actors/workers/idle_workers.hpp>
#include <troupe/actors/workers/worker_pool.hpp>
#include <troupe/base/recorder.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

/// Which process runs which device's handles. One process: everything is here.
struct placement {
  std::vector<std::size_t> process_of_device; ///< empty: all in process 0
  std::size_t this_process = 0;

  bool is_here(std::size_t device) const {
    return process_of_device.empty()
           || process_of_device[device] == this_process;
  }
  /// `is_here` of all devices; empty: all are.
  std::vector<bool> here() const {
    std::vector<bool> result;
    for (std::size_t d = 0; d < process_of_device.size(); ++d)
      result.push_back(is_here(d));
    return result;
  }
};

/// The actors of an SSA graph, wired and armed: a mailbox per op and variable
/// handle, a compute and a fetch stream per device, the all-reduce actor; with
/// the storages that they work on. CAF learns of a handle when its address is
/// asked for.
///
/// Thread rule: the executor's thread, but for what says otherwise.
class actor_graph {
public:
  struct parts {
    caf::actor_system* system;
    worker_pool* workers;
    const graph::program* program; ///< exposed (graph/sub_blocks.hpp)
    const graph::ssa_graph* graph;
    std::vector<std::shared_ptr<device>> devices;
    scope* parameters;
    const kernel_table* kernels;
    const executor_options* options;
    recorder* trace; ///< outlives the graph
    placement where;
    transport* transfers = nullptr; ///< outlives the graph; null: it has none
  };

  /// Throws error(unsupported_op) naming an op type without a kernel.
  explicit actor_graph(const parts& p);
  /// No step may be under way; retired and idle if there ever was one.
  ~actor_graph();
  actor_graph(const actor_graph&) = delete;
  actor_graph& operator=(const actor_graph&) = delete;

  graph_context& context() noexcept { return context_; }
  const graph_tasks& tasks() const noexcept { return *tasks_; }

  /// Sends the messages that begin a step: fed variables are ready, ops that
  /// wait for nothing else may run.
  void start(step_state& step) { engine_->start(step); }

  /// Learns how long a step took, and whether the ops of the next ones stay
  /// with the worker that makes them ready, because they are too short to move.
  void took(std::uint64_t step_ns) noexcept;

  /// Ends all actors: messages from outside find them gone, whoever holds their
  /// addresses.
  void retire();
  /// True if none of the graph's jobs is in a queue any more: after the end of
  /// the last step some may be, that find nothing to do. Any thread.
  bool idle() const noexcept;

  const engine& messages() const noexcept { return *engine_; }
  /// In how many first steps inputs of earlier ones may have no value.
  std::uint32_t steps_without_past() const noexcept {
    return steps_without_past_;
  }
  /// Says what handles wait for. Made when it is first asked for. Any thread.
  wait_finder& waits();
  /// Lets the message go that `delivery_shuffle::withheld` names.
  void let_go() { engine_->let_go(); }
  /// Steps that ran gathered. Any thread.
  std::uint64_t gathered_steps() const noexcept {
    return gathered_steps_.load(std::memory_order_relaxed);
  }
  std::size_t stream_actors() const noexcept { return streams_.size(); }
  /// Edges that are CAF messages.
  std::size_t message_edges() const noexcept { return message_edges_; }
  /// Ops that may end behind the return of their launch.
  std::size_t pending_ops() const noexcept { return pending_ops_; }

  /// Address of a handle's actor, the same each time; null if it is in another
  /// process. `id` is below graph.size(). Any thread.
  caf::strong_actor_ptr address(handle_id id);

private:
  void make_streams();
  void make_steps();
  std::vector<op_task*> make_tasks(const wiring_plan& plan,
                                   std::span<const handle_id> order);
  wiring_options wiring() const;
  void make_engine(const wiring_plan& plan, std::span<const handle_id> order);
  template <class T>
  T& make_stream(const planned_stream& s);

  parts parts_;
  const graph::ssa_graph& graph_;
  idle_workers helpers_;
  graph_context context_;
  std::unique_ptr<graph_tasks> tasks_;
  std::vector<planned_stream> planned_;
  std::vector<caf::strong_actor_ptr> stream_handles_;
  std::vector<stream_actor*> streams_; // by number in the plan
  std::optional<disturbance> disturbs_;
  std::optional<engine> engine_;
  std::size_t message_edges_ = 0;
  std::size_t pending_ops_ = 0;
  std::uint32_t steps_without_past_ = 0;
  std::uint64_t short_steps_ = 0; // in a row
  bool gathered_ = false;
  std::atomic<std::uint64_t> gathered_steps_{0}; // relaxed: a figure
  std::once_flag explained_;
  std::unique_ptr<wait_finder> waits_; // set by whoever asks first
  std::mutex asking_;
  // Those that somebody has asked for; guarded by `asking_`.
  std::unordered_map<handle_id, caf::strong_actor_ptr> addresses_;
};

} // namespace troupe::actors
