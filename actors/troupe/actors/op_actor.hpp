// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/op_task.hpp>
#include <troupe/actors/ready_op.hpp>
#include <troupe/actors/wired_actor.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
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
/// A step in life: arrive (x n) -> ready -> stream.submit -> run: launch ->
/// deliver launched -> [completed, any thread] -> deliver finished -> release
/// buffers -> tell itself (distance 1) -> tell the step.
///
/// Errors: a failed launch fails the step; ops that have not run then skip
/// their work and pass readiness on, so that the step ends soon and the
/// counters stay whole.
class op_actor final : public wired_actor, public ready_op, private work {
public:
  /// @param handle outlives the actor's steps
  op_actor(caf::actor_config& cfg, graph_context& graph,
           const graph::op_handle& handle, std::string name,
           std::unique_ptr<op_task> task, stream_actor& on);

  void arrive(std::uint32_t in_edge, const readiness& r) override;
  std::uint32_t add_in_edge(stream_actor* producer, storage* value,
                            std::uint32_t distance) override;
  void mark_remote(std::uint32_t in_edge) override {
    in_edges_[in_edge].remote = true;
  }
  /// Whether the step's end waits for this op. Before the first step.
  void ends_step(bool yes) noexcept { ends_step_ = yes; }
  /// Temporaries that the op uses, each once: what it releases when it is done.
  void releases(storage_places& places, std::span<const std::uint32_t> used) {
    values_ = &places;
    releases_.assign(used.begin(), used.end());
  }
  /// Arms the counters for steps 0, 1, ...: call once, when all in-edges are
  /// there. Edges of distance d bring nothing to the first d steps.
  void arm();

  /// Launches the op; its stream calls this.
  void run(worker& on) override;

  void fail_step(error reason) override {
    graph().fail(*running_, handle_, name(), std::move(reason));
  }

  void forget() override;
  std::string describe() const override;
  stream_actor& on_stream() const noexcept { return stream_; }
  const graph::op_handle& op() const noexcept override { return handle_; }
  std::string op_name() const override { return name(); }
  op_task& task() const noexcept { return *task_; }

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
  bool is_remote(std::uint32_t in_edge) const override {
    return in_edges_[in_edge].remote;
  }
  bool claim(std::uint32_t in_edge, std::uint32_t slot) override;
  void take_value(std::uint32_t in_edge, std::uint32_t slot,
                  const std::string& bytes) override;
  void execute(stream& on) override;
  void completed(std::exception_ptr failure) noexcept override;

  in_edge_state& place(std::uint32_t slot, std::uint32_t in_edge) const {
    return places_[slot * in_edges_.size() + in_edge];
  }
  launch_result launch(const step_state& step);
  void rearm(std::uint32_t slot);
  void wait_for_tickets(std::uint32_t slot);
  void half_done();
  void finish();
  void fail(std::exception_ptr reason) {
    graph().fail(*running_, handle_, name(), std::move(reason));
  }

  const graph::op_handle& handle_;
  std::unique_ptr<op_task> task_;
  stream_actor& stream_;
  storage_places* values_ = nullptr;
  std::vector<std::uint32_t> releases_;
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
