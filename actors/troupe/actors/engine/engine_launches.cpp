// SPDX-License-Identifier: Apache-2.0
// Launches that can be pending: what they wait for, and how they reach a
// stream.
#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/stream_actor.hpp>
#include <troupe/actors/tasks/op_task.hpp>

#include <exception>

namespace troupe::actors {

void engine::wait_for_tickets(const pending_op& op, const step_state& step) {
  const auto id = step.id.load(std::memory_order_relaxed);
  auto& queue = op.on->device_stream();
  for (auto& wanted : op.waits_for)
    if (id >= wanted.distance) {
      const auto which = which_counter(id - wanted.distance);
      if (const auto position = wanted.producer->positions[which])
        queue.wait(wanted.producer->on->device_stream(), position);
    }
  // Feeds of earlier steps arrive before those of this one.
  for (auto device : op.feeds_of)
    if (const auto& fed = step.fed[device]; fed.position != 0)
      queue.wait(*fed.on, fed.position);
}

// Ops of a failed step are still launched: later work on the stream, and work
// that waits for the ticket, must not overtake earlier work. A failed launch
// does not release the temporaries that the op alone releases, because their
// earlier users may still be running.
ticket engine::launch_by_ticket(pending_launch& launch) {
  auto& op = *launch.of_op;
  auto& on = op.on->device_stream();
  try {
    const auto result =
      on.launch(launch, {.tell_completion = op.wants_completion,
                         .give_position = op.gives_position,
                         .op_type = op.box->op()->desc->type});
    if (result.state == launch_status::done)
      launch.completed(nullptr);
    return result.position;
  } catch (...) {
    context_.fail(launch.state(), *op.box->op(), std::current_exception());
    if (!launch.was_executed.load(std::memory_order_relaxed))
      skip_unlaunched(launch);
    launch.completed(nullptr);
    return on.position();
  }
}

// A stream may have no memory to take the work. Ranks of other devices wait for
// this rank's call, and transfers for their values, so the task must learn of
// the failure all the same: after those that the stream has taken before, since
// calls of a rank are numbered in their order.
launch_status engine::skip_unlaunched(pending_launch& launch) {
  auto& op = *launch.of_op;
  auto& on = op.on->device_stream();
  try {
    on.synchronize(on.position());
  } catch (...) {
    // The device has failed: nothing runs any more.
  }
  try {
    return op.box->task->skip(launch.state(), launch);
  } catch (...) {
    return launch_status::done; // the step has failed for another reason
  }
}

// The task itself calls the completion.
void engine::launch_later(pending_launch& launch) {
  try {
    launch.of_op->on->device_stream().launch(
      launch, {.tell_completion = false,
               .op_type = launch.of_op->box->op()->desc->type});
  } catch (...) {
    if (launch.was_executed.load(std::memory_order_relaxed))
      return launch.completed(std::current_exception());
    context_.fail(launch.state(), *launch.of_op->box->op(),
                  std::current_exception());
    if (skip_unlaunched(launch) == launch_status::done)
      launch.completed(nullptr);
  }
}

void pending_launch::completed(std::exception_ptr failure) noexcept {
  if (failure)
    of->context_.fail(state(), *of_op->box->op(), failure);
  if (of_op->wants_completion)
    of_op->on->submit(*this);
}

} // namespace troupe::actors
