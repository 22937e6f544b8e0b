// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/disturbance.hpp>
#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/stream_actor.hpp>
#include <troupe/actors/engine/wait_finder.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/tasks/graph_tasks.hpp>
#include <troupe/actors/workers/idle_workers.hpp>
#include <troupe/actors/workers/sharing_choice.hpp>
#include <troupe/actors/workers/worker_pool.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

/// The actors of an SSA graph, wired and ready to run, with the storages that
/// they use: a mailbox per op and variable handle, a compute stream and a fetch
/// stream per device, and the all-reduce actor. A handle's CAF actor is created
/// when its address is requested.
///
/// Thread rule: the executor's thread, unless noted otherwise.
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
    /// told what workers run; outlives the graph; null: nobody asks
    busy_workers* busy;
    placement where;
    /// outlives the graph; null if the graph has no transfers
    transport* transfers = nullptr;
    /// see graph_tasks; outlives the graph
    arena* merged_values = nullptr;
  };

  /// Throws error(unsupported_op) naming an op type without a kernel.
  explicit actor_graph(const parts& p);
  /// No step may be running. If any step ever ran, the graph must be retired
  /// and idle.
  ~actor_graph();
  actor_graph(const actor_graph&) = delete;
  actor_graph& operator=(const actor_graph&) = delete;

  graph_context& context() noexcept { return context_; }
  /// The graph with all of its edges. Made on first use if the executor's graph
  /// lacks some. Any thread.
  const graph::ssa_graph& graph();
  const graph_tasks& tasks() const noexcept { return *tasks_; }

  /// Sends the start messages of a step, to fed variables and to ops that wait
  /// for nothing else.
  ///
  /// If the step before is not the last one that was started, there must be no
  /// running step, and the graph must be idle.
  void start(step_state& step) {
    const auto id = step.id.load(std::memory_order_relaxed);
    if (id != next_step_) [[unlikely]]
      engine_->renumber(next_step_, id);
    next_step_ = id + 1;
    step.sharing = sharing_.now();
    parts_.workers->queue().share_short_jobs(step.sharing
                                             == op_sharing::all_ops);
    engine_->start(step);
  }

  /// Takes the duration of a step that has ended and decides how the workers
  /// share the ops of the next steps.
  void took(const step_state& step) noexcept;

  /// Terminates all actors. Messages from outside then no longer reach them.
  void retire();
  /// True if none of the graph's jobs is queued any more. After the end of the
  /// last step, jobs without work may still be queued. Any thread.
  bool idle() const noexcept;

  const engine& messages() const noexcept { return *engine_; }
  /// The actor of the first device's compute stream.
  stream_actor& compute_stream() const;
  /// The streams of all devices; the first device's compute stream comes first.
  std::vector<stream*> device_streams() const;
  /// Number of first steps in which delayed inputs can lack a value.
  std::uint32_t steps_without_past() const noexcept {
    return steps_without_past_;
  }
  /// Finds what handles wait for. Created on first use. Any thread.
  wait_finder& waits();
  /// Delivers the message that `delivery_shuffle::withheld` names.
  void let_go() { engine_->let_go(); }
  /// Number of steps that ran on one worker. Any thread.
  std::uint64_t single_worker_steps() const noexcept {
    return single_worker_steps_.load(std::memory_order_relaxed);
  }
  ///@{
  /// Number of actors in this process.
  std::size_t op_actors() const noexcept { return op_actors_; }
  std::size_t variable_actors() const noexcept { return variable_actors_; }
  std::size_t stream_actors() const noexcept { return streams_.size(); }
  ///@}
  /// Number of edges that send CAF messages.
  std::size_t message_edges() const noexcept { return message_edges_; }
  /// Number of ops that may complete after their launch returns.
  std::size_t pending_ops() const noexcept { return pending_ops_; }

  /// Address of a handle's actor, the same in each call; null if the handle is
  /// in another process. `id` must be less than graph.size(). Any thread.
  caf::strong_actor_ptr address(handle_id id);

private:
  void make_streams();
  void make_steps();
  std::vector<op_task*> make_tasks(const graph::wiring_plan& plan,
                                   std::span<const handle_id> order);
  graph::wiring_options wiring() const;
  void make_engine(const graph::wiring_plan& plan,
                   std::span<const handle_id> order);
  template <class T>
  T& make_stream(const graph::planned_stream& s);

  parts parts_;
  const graph::ssa_graph& graph_;
  idle_workers helpers_;
  graph_context context_;
  std::unique_ptr<graph_tasks> tasks_;
  std::vector<graph::planned_stream> planned_;
  std::vector<caf::strong_actor_ptr> stream_handles_;
  std::vector<stream_actor*> streams_; // by number in the plan
  std::optional<disturbance> disturbs_;
  std::optional<engine> engine_;
  std::size_t op_actors_ = 0;
  std::size_t variable_actors_ = 0;
  std::size_t message_edges_ = 0;
  std::size_t pending_ops_ = 0;
  std::uint32_t steps_without_past_ = 0;
  step_id next_step_ = 0; // that the engine expects
  sharing_choice sharing_;
  trace_level recorded_level_ = trace_level::off; // of the last step
  // Relaxed: only a statistic.
  std::atomic<std::uint64_t> single_worker_steps_{0};
  std::once_flag completed_;
  std::optional<graph::ssa_graph> complete_; // set on first use
  std::once_flag explained_;
  std::unique_ptr<wait_finder> waits_; // set on first use
  std::mutex asking_;
  // Addresses that have been requested; guarded by `asking_`.
  std::unordered_map<handle_id, caf::strong_actor_ptr> addresses_;
};

} // namespace troupe::actors
