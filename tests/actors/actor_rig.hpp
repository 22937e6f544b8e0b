// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/all_reduce_actor.hpp>
#include <troupe/actors/op_actor.hpp>
#include <troupe/actors/scheduling.hpp>
#include <troupe/actors/stream_actor.hpp>

#include <caf/actor_system_config.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::test {

/// Op and stream actors wired by hand around a queue that the test serves.
class actor_rig {
public:
  using body = std::function<void(actors::step_state&)>;

  /// @param slots steps in flight plus the longest distance
  explicit actor_rig(std::uint32_t slots = 2, std::size_t workers = 1);
  ~actor_rig();

  /// A stream of a CPU device that hands its ops to `queue()`, or to a queue
  /// of the test.
  actors::stream_actor& add_stream(int width, job_queue* queue = nullptr);
  actors::all_reduce_actor& add_all_reduce();

  /// An op that calls `run`; its name is a, b, c, ...
  actors::op_actor& add_op(actors::stream_actor& on, body run = {},
                           std::int32_t priority = 0,
                           std::int32_t collective_index = -1);
  /// `to` of step s + distance waits for `from` of step s.
  void connect(actors::op_actor& from, actors::op_actor& to,
               std::uint32_t distance = 0);
  /// Every step begins with a message to `op`.
  void starts(actors::op_actor& op);
  /// After the last op and edge, before the first step.
  void arm();

  /// Step s may begin.
  void admit(step_id s);
  /// Sends the start messages of a step that was admitted.
  void start(step_id s);
  void begin(step_id s) {
    admit(s);
    start(s);
  }
  actors::step_state& state(step_id s) {
    return *context.steps[s % context.steps.size()];
  }

  /// Runs jobs on this thread until there are none.
  void serve(job_queue& jobs);
  void serve() { serve(queue); }

  /// "a0 b0 a1": what ran in which step, in this order; and forgets it.
  std::string ran();
  /// Steps that have ended, in order.
  std::vector<step_id> ended();

  job_queue queue;
  actors::graph_context context;
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;

private:
  template <class T>
  T& keep(std::unique_ptr<stream> made, job_queue& jobs);

  std::unique_ptr<device> device_;
  graph::op_desc desc_;
  std::deque<graph::op_handle> op_handles_;
  std::vector<caf::strong_actor_ptr> handles_;
  std::vector<actors::stream_actor*> streams_;
  std::vector<actors::op_actor*> ops_;
  std::vector<std::pair<actors::op_actor*, std::uint32_t>> starts_;
  std::mutex mutex_;
  std::string ran_;
  std::vector<step_id> ended_;
};

} // namespace troupe::test
