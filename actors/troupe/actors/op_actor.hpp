// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/handle_actor.hpp>
#include <troupe/actors/op_task.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::actors {

/// Runs one op of the SSA graph, once per step, when the last readiness message
/// that it waits for has arrived.
///
/// The counting mailbox: per slot a counter of messages still to come and a
/// place for each in-edge. Whoever sends writes the in-edge's place and then
/// decrements the counter; the one who takes it to zero hands the actor to its
/// stream. Nobody queues, locks or allocates.
///
/// Memory order: the decrement is acq_rel. Its release half publishes the
/// sender's writes (the value, the in-edge's place); its acquire half, on the
/// last decrement, takes in those of all senders, since the decrements of one
/// counter form a release sequence. Handing the actor to another worker
/// happens through the stream's inbox or the job queue, which order it again.
///
/// The direct form (one process, edges as counters, streams that are done at
/// launch): ops tell the ops behind them, without the variables between and
/// without messages that others imply (`graph::op_order`). The last message
/// needs no decrement: who reads a count of one, acquire, has seen all others
/// and is the only one left. So a chain runs without any locked instruction.
/// An op whose messages all come from the thread that drains its stream counts
/// with plain loads and stores; the stream's inbox orders drains on different
/// workers.
///
/// A step in life: arrive (x n) -> ready -> stream.submit -> run: launch ->
/// deliver launched -> [completed, any thread] -> deliver finished -> release
/// buffers -> tell itself (distance 1) -> tell the step.
///
/// Errors: a failed launch fails the step; ops that have not run then skip
/// their work and pass readiness on, so that the step ends soon and the
/// counters stay whole.
class op_actor final : public handle_actor, public job, private work {
public:
  /// @param handle outlives the actor's steps
  op_actor(caf::actor_config& cfg, graph_context& graph,
           const graph::op_handle& handle, std::string name,
           std::unique_ptr<op_task> task, stream_actor& on);

  /// An op that hears directly that this one is done.
  struct successor {
    op_actor* to;
    std::uint32_t distance;
  };
  /// How many messages an op waits for in the direct form.
  struct direct_count {
    std::uint32_t same_step = 0;   ///< from ops of the step and from its start
    std::uint32_t step_before = 0; ///< from ops of the step before, itself too
    /// All come from the thread that drains the op's stream.
    bool one_thread = false;
  };
  /// Switches to the direct form: what all the graph's messages to an op say is
  /// said by those of its nearest predecessors alone, as calls. Instead of
  /// `arm`; every op of the graph or none.
  /// @param releases storages that this op is among the last users of
  /// @param tells_itself steps overlap, so a step waits for the one before
  void arm_direct(std::vector<successor> successors,
                  std::vector<storage*> releases, const direct_count& count,
                  bool tells_itself);
  /// Slots that a graph may have for the direct form.
  static constexpr std::uint32_t max_direct_slots = 4;
  /// The direct form of a message, sent by a thread of the graph or by the
  /// start of a step.
  void arrive_direct(std::uint32_t slot);

  void arrive(std::uint32_t in_edge, const readiness& r) override;
  std::uint32_t add_in_edge(stream_actor* producer, storage* value,
                            std::uint32_t distance) override;
  void mark_remote(std::uint32_t in_edge) override {
    in_edges_[in_edge].remote = true;
  }
  /// Whether the step's end waits for this op. Before the first step.
  void ends_step(bool yes) noexcept { ends_step_ = yes; }
  /// Arms the counters for steps 0, 1, ...: call once, when all in-edges are
  /// there. Edges of distance d bring nothing to the first d steps.
  void arm();

  /// Launches the op; its stream calls this.
  void run(worker& on) override;

  /// Makes the step that this op runs fail. By its stream, before `run`.
  void fail_step(error reason);

  void forget() override;
  std::string describe() const override;
  stream_actor& on_stream() const noexcept { return stream_; }
  const graph::op_handle& op() const noexcept { return handle_; }
  op_task& task() const noexcept { return *task_; }
  /// Link for the lists of its stream.
  op_actor* next_in_stream = nullptr;

private:
  struct in_edge_info {
    stream_actor* producer;
    storage* value;
    std::uint32_t distance;
    bool remote = false; // the sender is in another process
  };
  /// What has come along an in-edge in one step. Written by the one sender
  /// before its decrement, read after the last decrement.
  struct in_edge_state {
    std::atomic<bool> arrived{false}; // atomic for `describe`, from outside
    ticket position = 0;
  };

  bool has_in_edge(std::uint32_t in_edge) const override {
    return in_edge < in_edges_.size();
  }
  bool claim(std::uint32_t in_edge, std::uint32_t slot) override;
  void take_value(std::uint32_t in_edge, std::uint32_t slot,
                  const std::string& bytes) override;
  void execute(stream& on) override;
  void completed(std::exception_ptr failure) noexcept override;

  in_edge_state& place(std::uint32_t slot, std::uint32_t in_edge) const {
    return places_[slot * in_edges_.size() + in_edge];
  }
  std::uint32_t missing(std::uint32_t slot) const noexcept;
  void run_direct();
  void tell_successors(std::uint32_t slot);
  launch_result launch(const step_state& step);
  void rearm(std::uint32_t slot);
  void wait_for_tickets(std::uint32_t slot);
  void fail(std::exception_ptr reason);
  void half_done();
  void finish();

  /// All of the direct form that a message touches, on one cache line, and
  /// what a run touches on the next.
  struct alignas(64) direct_state {
    std::array<std::atomic<std::uint32_t>, max_direct_slots> missing{};
    std::uint32_t expected = 0; ///< messages per step
    bool on = false;            ///< this is the form
    bool one_thread = false;
    bool tells_itself = false;
    std::vector<successor> successors;
    std::vector<storage*> releases;
  };

  direct_state direct_;
  const graph::op_handle& handle_;
  std::unique_ptr<op_task> task_;
  stream_actor& stream_;
  std::vector<in_edge_info> in_edges_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> missing_; // per slot
  std::unique_ptr<in_edge_state[]> places_;               // per slot, in-edge
  bool ends_step_ = true;
  bool tickets_possible_ = false;     // a producer's stream may finish later
  step_state* running_ = nullptr;     // the step that is ready or running
  std::atomic<step_id> next_step_{0}; // the first not launched; `describe`
  // Pending launches end twice, by the launcher and by `completed`, in either
  // order; the second one finishes. acq_rel: it sees what the first one wrote.
  std::atomic<int> halves_{0};
};

} // namespace troupe::actors
