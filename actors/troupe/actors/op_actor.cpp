// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/op_actor.hpp>

#include <troupe/actors/idle_workers.hpp>

#include <troupe/actors/stream_actor.hpp>
#include <troupe/actors/value_codec.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/base/clock.hpp>

#include <utility>

namespace troupe::actors {

op_actor::op_actor(caf::actor_config& cfg, graph_context& graph,
                   const graph::op_handle& handle, std::string name,
                   std::unique_ptr<op_task> task, stream_actor& on)
  : wired_actor(cfg, graph, handle.id, std::move(name)),
    ready_op(handle.priority), handle_(handle), task_(std::move(task)),
    stream_(on) {
  stream_.expect(*this);
}

std::uint32_t op_actor::add_in_edge(stream_actor* producer, storage* value,
                                    std::uint32_t distance) {
  in_edges_.push_back({producer, value, distance});
  tickets_possible_ |= producer && producer != &stream_;
  return static_cast<std::uint32_t>(in_edges_.size() - 1);
}

void op_actor::arm() {
  const auto slots = graph().slots();
  missing_ = std::make_unique<std::atomic<std::uint32_t>[]>(slots);
  places_ = std::make_unique<in_edge_state[]>(slots * in_edges_.size());
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    std::uint32_t expected = 0;
    for (std::uint32_t i = 0; i < in_edges_.size(); ++i) {
      const auto comes = in_edges_[i].distance <= slot;
      expected += comes;
      place(slot, i).arrived.store(!comes, std::memory_order_relaxed);
    }
    missing_[slot].store(expected, std::memory_order_relaxed);
  }
}

void op_actor::rearm(std::uint32_t slot) {
  // Relaxed: the slot's next messages belong to a step that is admitted after
  // this one has ended, and this op's end is part of that.
  for (std::uint32_t i = 0; i < in_edges_.size(); ++i) {
    place(slot, i).arrived.store(false, std::memory_order_relaxed);
    place(slot, i).position = 0;
  }
  missing_[slot].store(static_cast<std::uint32_t>(in_edges_.size()),
                       std::memory_order_relaxed);
}

void op_actor::arrive(std::uint32_t in_edge, const readiness& r) {
  auto& p = place(r.slot, in_edge);
  p.position = r.position;
  p.arrived.store(true, std::memory_order_relaxed);
  if (r.failed)
    graph().steps[r.slot]->failed.store(true, std::memory_order_relaxed);
  if (missing_[r.slot].fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  running_ = graph().steps[r.slot].get();
  if (graph().trace)
    trace(trace_kind::ready, no_handle, r.slot);
  stream_.submit(*this);
}

void op_actor::wait_for_tickets(std::uint32_t slot) {
  for (std::uint32_t i = 0; i < in_edges_.size(); ++i)
    if (auto* producer = in_edges_[i].producer;
        producer && producer != &stream_)
      if (auto position = place(slot, i).position)
        stream_.device_stream().wait(producer->device_stream(), position);
}

void op_actor::run(worker&) {
  auto& step = *running_;
  const auto slot = step.slot;
  if (graph().trace)
    trace(trace_kind::launch, no_handle, slot);
  const auto launched = launch(step);
  rearm(slot);
  next_step_.store(step.id + 1, std::memory_order_relaxed);
  const auto failed = step.failed.load(std::memory_order_relaxed);
  if (launched.state == launch_result::status::done) {
    deliver({slot, phase::both, failed, 0});
    finish();
    return;
  }
  deliver({slot, phase::launched, failed, launched.position});
  half_done();
}

launch_result op_actor::launch(const step_state& step) {
  if (step.failed.load(std::memory_order_relaxed))
    return {};
  halves_.store(2, std::memory_order_relaxed);
  try {
    if (tickets_possible_)
      wait_for_tickets(step.slot);
    return stream_.device_stream().launch(*this);
  } catch (...) {
    fail(std::current_exception());
    return {};
  }
}

void op_actor::execute(stream&) {
  auto& step = *running_;
  if (graph().dry_run || step.failed.load(std::memory_order_relaxed))
    return;
  if (graph().trace)
    graph().helpers->works_on(handle(), step.id);
  task_->run(step);
}

void op_actor::completed(std::exception_ptr failure) noexcept {
  if (failure)
    fail(failure);
  const auto slot = running_->slot;
  deliver({slot, phase::finished,
           running_->failed.load(std::memory_order_relaxed), 0});
  half_done();
}

void op_actor::half_done() {
  if (halves_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    finish();
}

void op_actor::finish() {
  auto& step = *running_;
  const auto slot = step.slot;
  if (graph().trace)
    trace(trace_kind::completion, no_handle, slot);
  for (auto temporary : releases_)
    if (values_->released(temporary, slot) && graph().trace)
      trace(trace_kind::release, no_handle, slot);
  const auto next = graph().slot_after(slot, 1);
  if (ends_step_ && step.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1)
    graph().step_ended(graph().owner, step);
  // In-edge 0 is the one from itself: from here on this op may run in the next
  // step. It comes last, so that no step ends before the one ahead of it has
  // been reported.
  arrive(0, {next, phase::both, false, 0});
}

void op_actor::forget() {
  wired_actor::forget();
  task_.reset();
}

bool op_actor::claim(std::uint32_t in_edge, std::uint32_t slot) {
  return !in_edges_[in_edge].remote
         || !place(slot, in_edge)
               .arrived.exchange(true, std::memory_order_acq_rel);
}

void op_actor::take_value(std::uint32_t in_edge, std::uint32_t slot,
                          const std::string& bytes) {
  TROUPE_ASSERT(in_edge < in_edges_.size());
  if (auto* target = in_edges_[in_edge].value)
    decode_value(bytes, target->memory(), target->at(slot));
}

std::string op_actor::describe() const {
  const auto text = std::string{name()} + ": ";
  const auto first = next_step_.load(std::memory_order_relaxed);
  const auto* oldest = graph().oldest_step_without([&](const step_state& s) {
    return s.id < first
           || missing_[s.slot].load(std::memory_order_relaxed) == 0;
  });
  if (!oldest)
    return text + "waits for nothing";
  std::string in_edges;
  for (std::uint32_t i = 0; i < in_edges_.size(); ++i)
    if (!place(oldest->slot, i).arrived.load(std::memory_order_relaxed))
      in_edges += " " + std::to_string(i);
  return text + "step " + std::to_string(oldest->id) + " waits for in-edges"
         + in_edges;
}

} // namespace troupe::actors
