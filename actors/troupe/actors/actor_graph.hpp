// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/all_reduce_actor.hpp>
#include <troupe/actors/direct_actor.hpp>
#include <troupe/actors/direct_graph.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/graph_tasks.hpp>
#include <troupe/actors/idle_workers.hpp>
#include <troupe/actors/op_actor.hpp>
#include <troupe/actors/scheduling.hpp>
#include <troupe/actors/spread_choice.hpp>
#include <troupe/actors/var_actor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Which process runs which device's handles. Collectives run where their
/// first device does. One process: everything is here.
struct placement {
  std::vector<std::size_t> process_of_device; ///< empty: all in process 0
  std::size_t this_process = 0;

  std::size_t process_of(std::size_t device) const {
    return process_of_device.empty() ? 0 : process_of_device[device];
  }
  bool is_here(std::size_t device) const {
    return process_of(device) == this_process;
  }
};

/// The actors of an SSA graph, wired and armed: op and variable actors, a
/// compute and a fetch stream per device, the all-reduce actor; with the
/// storages they work on.
///
/// In the direct form (`direct_graph`) an op actor is its mailbox and its task,
/// a variable needs neither, and CAF learns of a handle when its address is
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
    placement where;
  };

  /// Throws error(unsupported_op) naming an op type without a kernel.
  explicit actor_graph(const parts& p);
  /// No step may be under way; retired and idle if there ever was one.
  ~actor_graph();
  actor_graph(const actor_graph&) = delete;
  actor_graph& operator=(const actor_graph&) = delete;

  graph_context& context() noexcept { return context_; }
  const graph_tasks& tasks() const noexcept { return *tasks_; }

  /// Sends the messages that begin the step of `slot`: fed variables are
  /// ready, ops that wait for nothing else may run.
  void start(std::uint32_t slot);

  /// Learns how long a step took, and chooses whether the next ones spread over
  /// the workers (`spread_choice`).
  void took(std::uint64_t step_ns) noexcept;

  /// Ends all actors: messages from outside find them gone, whoever holds their
  /// addresses.
  void retire();
  /// True if none of the graph's jobs is in a queue any more: after the end of
  /// the last step some may be, that find nothing to do. Any thread.
  bool idle() const noexcept;

  /// Handles whose end a step waits for, in this process.
  std::uint32_t ends_per_step() const noexcept { return ends_per_step_; }
  std::size_t messages_per_step() const noexcept;
  /// Steps that ran gathered (spread_choice.hpp). Any thread.
  std::uint64_t gathered_steps() const noexcept {
    return gathered_steps_.load(std::memory_order_relaxed);
  }
  std::size_t stream_actors() const noexcept { return streams_.size(); }

  /// Address of a handle's actor, the same each time; null if it is in another
  /// process. `id` is below graph.size(). Any thread.
  caf::strong_actor_ptr address(handle_id id);
  /// Handles of other processes that this one sends to.
  std::vector<handle_id> remote_receivers() const;
  /// Makes up the messages of other processes that a step has not got, as
  /// failed ones, so that it ends. For a process that is lost.
  void make_up_remote(std::uint32_t slot);
  /// Tells all senders where the actor of a handle elsewhere is.
  void connect(handle_id id, const caf::strong_actor_ptr& address);

private:
  struct device_streams {
    stream_actor* compute;
    stream_actor* fetch;
  };

  void make_streams();
  void make_steps(std::uint32_t slots);
  void make_op_actors();
  void make_var_actors();
  bool can_go_direct(std::uint32_t slots) const;
  void make_direct();
  void count_users();
  void wire();
  void wire_edge(const graph::edge& e, std::size_t number);
  void add_starts();

  template <class T>
  T* make_stream(std::size_t device, const char* name, int width,
                 std::size_t home);
  stream_actor& stream_of(const graph::op_handle& op) const;
  bool is_here(handle_id id) const;
  wired_actor* actor(handle_id id) const;
  op_actor* op(handle_id id) const;

  parts parts_;
  const graph::ssa_graph& graph_;
  idle_workers helpers_;
  graph_context context_;
  std::unique_ptr<graph_tasks> tasks_;
  std::vector<caf::strong_actor_ptr> stream_handles_;
  std::vector<stream_actor*> streams_;
  std::vector<device_streams> device_streams_;
  all_reduce_actor* all_reduce_ = nullptr;
  std::vector<caf::strong_actor_ptr> actors_; // by handle, general form
  // Direct form: those that somebody has asked for, guarded by `asking_`.
  std::unordered_map<handle_id, caf::strong_actor_ptr> addresses_;
  std::mutex asking_;
  std::vector<std::uint32_t> in_edges_; // by handle: announced so far
  std::vector<std::pair<wired_actor*, std::uint32_t>> starts_;
  std::vector<std::pair<wired_actor*, std::uint32_t>> remote_in_edges_;
  std::uint32_t ends_per_step_ = 0;
  bool in_direct_form_ = false;
  spread_choice spread_;
  std::atomic<std::uint64_t> gathered_steps_{0}; // relaxed: a figure
  std::unique_ptr<direct_graph> direct_;         // null in the general form
};

} // namespace troupe::actors
