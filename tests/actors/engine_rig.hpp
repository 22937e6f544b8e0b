// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/configure.hpp>
#include <troupe/actors/engine/all_reduce_actor.hpp>
#include <troupe/actors/engine/disturbance.hpp>
#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/tasks/op_task.hpp>
#include <troupe/actors/workers/worker_pool.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/recorder.hpp>

#include <caf/actor_system_config.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::test {

/// An engine that runs ops of the test, on streams whose queues the test
/// serves.
class engine_rig {
public:
  using body = std::function<void(actors::step_state&)>;

  explicit engine_rig(std::uint32_t steps_in_flight = 2,
                      std::size_t workers = 1);
  ~engine_rig();

  /// Streams that are added later run their ready ops in an order drawn from
  /// `seed`, which is not 0.
  void shuffle_streams(std::uint64_t seed) { stream_seed_ = seed; }
  /// Adds a CPU device with one stream, which passes its ops to `jobs`, or to
  /// `queue` if `jobs` is null. Returns the stream's number.
  std::uint32_t add_stream(int width = 1, job_queue* jobs = nullptr);
  /// The same for collectives.
  std::uint32_t add_all_reduce();
  /// Adds an op that calls `run`. Its name is a, b, c, ...
  handle_id add_op(std::uint32_t on, body run = {}, std::int32_t priority = 0,
                   std::int32_t collective_index = -1);
  /// `to` of step s + distance waits for `from` of step s.
  void connect(handle_id from, handle_id to, std::uint32_t distance = 0);
  /// The launches of `op` complete by a callback. Called before `wire`.
  void complete_later(handle_id op) { later_.push_back(op); }
  /// Called before `wire`.
  void disturb(const delivery_shuffle& wanted) { disturbs_.emplace(wanted); }
  /// Called after the last op and edge, before the first step.
  void wire();

  /// Prepares the state of step s.
  void admit(step_id s);
  /// Sends the start messages of a step that was admitted.
  void start(step_id s) { messages->start(state(s)); }
  void begin(step_id s) {
    admit(s);
    start(s);
  }
  actors::step_state& state(step_id s) { return context.state_of(s); }
  actors::stream_actor& stream_at(std::uint32_t number) {
    return *streams_[number];
  }
  const graph::wiring_plan& plan() const { return *plan_; }

  /// Runs jobs on this thread until there are none.
  void serve(job_queue& jobs);
  void serve() { serve(queue); }

  /// Which op ran in which step, in order, since the last call: "a0 b0 a1".
  std::string ran();
  /// Steps that have ended, in order.
  std::vector<step_id> ended();

  job_queue queue;
  actors::graph_context context;
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  std::optional<recorder> trace;
  std::optional<actors::engine> messages;

private:
  template <class T>
  std::uint32_t keep(graph::stream_kind kind, int width, job_queue& jobs);

  std::uint32_t steps_in_flight_;
  std::uint64_t stream_seed_ = 0;
  std::vector<handle_id> later_;
  std::unique_ptr<device> device_;
  std::deque<graph::op_desc> descriptions_;
  graph::ssa_graph graph_;
  std::vector<graph::planned_stream> planned_;
  std::vector<caf::strong_actor_ptr> handles_;
  std::vector<actors::stream_actor*> streams_;
  std::vector<std::uint32_t> stream_of_; // by op
  std::deque<std::unique_ptr<actors::op_task>> tasks_;
  std::optional<graph::wiring_plan> plan_;
  std::optional<actors::storage_places> places_;
  std::optional<actors::disturbance> disturbs_;
  std::mutex mutex_;
  std::string ran_;
  std::vector<step_id> ended_;
};

} // namespace troupe::test
