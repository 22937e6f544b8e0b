// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/actor_graph.hpp>
#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/handles.hpp>
#include <troupe/actors/option_checks.hpp>
#include <troupe/actors/own_system.hpp>
#include <troupe/actors/remote/process_run.hpp>
#include <troupe/actors/remote/state_gathering.hpp>
#include <troupe/actors/remote/transport.hpp>
#include <troupe/actors/steps/captured_steps.hpp>
#include <troupe/actors/steps/executor_graph.hpp>
#include <troupe/actors/steps/feeder.hpp>
#include <troupe/actors/steps/parameter_replicas.hpp>
#include <troupe/actors/steps/replica_check.hpp>
#include <troupe/actors/steps/scatter.hpp>
#include <troupe/actors/steps/step_failures.hpp>
#include <troupe/actors/steps/update_periods.hpp>
#include <troupe/actors/tracing/executor_traces.hpp>
#include <troupe/actors/workers/running_jobs.hpp>
#include <troupe/actors/workers/serving_thread.hpp>
#include <troupe/actors/workers/step_server.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/one_at_a_time.hpp>
#include <troupe/comm/shm/process_memory.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>
#include <troupe/graph/unsupported_ops.hpp>

#include <algorithm>
#include <limits>
#include <list>
#include <new>
#include <ranges>
#include <span>
#include <string_view>
#include <thread>

namespace troupe {

/// A step that was submitted and not yet waited for.
struct step_in_flight {
  step_id id = 0;
  std::vector<std::string> wanted;
  bool collected = false; // its slot is free again
  step_result result;
  std::optional<error> failure;
  // Set if nobody waits for the step. The thread that ends it calls this, and
  // takes the result.
  std::function<void(step_outcome)> done;
  bool is_async = false;
  bool is_launched = false; // it is one launch of what was recorded
  // Its result is about to be taken or has been. Stored with release, loaded
  // with acquire by the executor's thread, which then waits for the step's end.
  std::atomic<bool> is_delivered{false};
};

/// The state of an executor, and what its steps do.
struct executor::impl {
  impl(std::shared_ptr<const graph::program> main, executor_options opts);
  ~impl();

  one_at_a_time::call enter();
  one_at_a_time::call enter_step();
  bool is_running() const;
  void require_no_step() const;
  actors::parameter_replicas replicas();
  void synchronize_parameters();
  void require_values();
  /// What the submitting thread does next. A thread that returns to the
  /// application takes no worker's seat, because it would not serve there.
  enum class then { returns, waits };
  step_id submit(const feed_map& feeds, std::span<const std::string> fetches,
                 actors::serving_thread& serving, then next,
                 std::function<void(step_outcome)> done = {});
  void wait(step_id step, step_result& result, actors::serving_thread& serving);
  void collect_oldest(actors::serving_thread& serving);
  void collect(step_in_flight& s, actors::serving_thread& serving);
  /// Takes error and result out of the state of a step that has ended.
  void take_result(step_in_flight& s, actors::step_state& state,
                   std::vector<actors::fetched_value>& taken);
  void deliver(step_in_flight& s, actors::step_state& state) noexcept;
  /// Collects and forgets the oldest steps if their results were delivered.
  void drop_delivered(actors::serving_thread& serving);
  bool wants(const std::vector<std::string>& wanted,
             const std::string& name) const;
  /// Does everything in a step that can fail before its first message. Other
  /// steps are not affected until `admit`.
  void prepare(const step_in_flight& s, const feed_map& feeds,
               std::int64_t samples);
  /// @param is_alone no other step runs
  void admit(step_in_flight& s, actors::serving_thread& serving, then next,
             actors::captured_steps::way how, bool is_alone);
  void start_captures();
  /// Waits until no job of the graph is queued any more, after the end of all
  /// steps. The calling thread has no seat.
  void settle();
  /// Lets actors record the step. Returns how it runs.
  actors::captured_steps::way
  record(step_in_flight& s, actors::serving_thread& serving, then next);
  static void step_failed(void* owner, actors::step_state& step);
  static void step_ended(void* owner, actors::step_state& step);
  void tell_others(const actors::step_state& step);
  actors::collective_ranks* ranks_of_others() const;
  actors::placement where() const;
  void connect();
  /// True if some devices are in other processes, which feed them.
  bool feeds_a_share() const;
  std::int64_t check(const feed_map& feeds) const;
  feed_map own_share(const feed_map& batch) const;
  actors::step_state& state_of(step_id id) {
    auto& steps = actors->context().steps;
    return *steps[id % steps.size()];
  }

  one_at_a_time use;
  executor_options options;
  std::shared_ptr<const graph::program> program; // exposed
  std::string loss;
  actors::needed_feeds feeds_needed;
  bool gathers_losses = false;
  std::shared_ptr<scope> parameters;
  std::vector<std::shared_ptr<device>> devices;
  graph::ssa_graph ssa;
  std::unique_ptr<actors::own_system> own;
  std::unique_ptr<actors::worker_pool> workers;
  std::unique_ptr<actors::executor_traces> traces;
  recorder* trace = nullptr; // that of `traces`
  run_pace pace;
  troupe::trace::phase_log start; // what making the executor took
  // Number of steps that have ended. Stored with release by the thread that
  // ends a step, loaded with acquire by the waiting thread.
  std::atomic<std::uint64_t> ended{0};
  // null if the graph has no transfers
  std::unique_ptr<actors::transport> transfers;
  std::unique_ptr<actors::loopback_wire> loopback;
  // memory that other processes map; null in a run of one process
  std::shared_ptr<comm::process_memory> shared;
  std::optional<actors::step_failures> failures; // once there are actors
  std::unique_ptr<actors::actor_graph> actors;
  std::optional<actors::feeder> feeding;          // once there are actors
  std::optional<actors::captured_steps> captures; // null: no step is captured
  std::string capture_obstacle;                   // empty: none
  // in a run over several processes
  std::optional<actors::process_run> others;
  std::list<step_in_flight> in_flight;       // oldest first
  std::list<step_in_flight> spare;           // kept for reuse of their memory
  std::vector<actors::fetched_value> values; // of the step being collected
  std::optional<actors::step_server> server; // of steps nobody waits for
  std::shared_ptr<void> attached;            // see `executor_options::attach`
  step_id next_step = 0;
  actors::update_periods periods;
  // Added to the number of a step to get the one that its random numbers have.
  std::uint64_t random_offset = 0;
  std::uint64_t discards_seen = 0; ///< of the scope, when its values were there
};

} // namespace troupe
