// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/busy_workers.hpp>

#include <troupe/base/spin.hpp>
#include <troupe/base/stacks/signal_stack.hpp>
#include <troupe/base/threads.hpp>

namespace troupe::actors {

static_assert(std::atomic<handle_id>::is_always_lock_free
              && std::atomic<step_id>::is_always_lock_free); // for handlers

busy_workers::busy_workers(std::size_t workers)
  : workers_(workers), notes_(std::make_unique<note[]>(workers)) {}

// A handler that comes in between finds no op, which is what was so far.
void busy_workers::begin(note& to, handle_id op, step_id step,
                         bool is_help) noexcept {
  if (!have_signal_stack())
    return; // a thread without one must not be asked while it computes
  to.thread.store(this_thread_number(), std::memory_order_relaxed);
  to.step.store(step, std::memory_order_relaxed);
  to.since.store(ticks(), std::memory_order_relaxed);
  to.is_help.store(is_help, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_release);
  to.op.store(op, std::memory_order_relaxed);
}

void busy_workers::begins(std::size_t worker, handle_id op,
                          step_id step) noexcept {
  begin(notes_[worker], op, step, false);
}

void busy_workers::helps(std::size_t worker, std::size_t of) noexcept {
  const auto& its = notes_[of];
  begin(notes_[worker], its.op.load(std::memory_order_relaxed),
        its.step.load(std::memory_order_relaxed), true);
}

void busy_workers::ends(std::size_t worker) noexcept {
  notes_[worker].op.store(no_handle, std::memory_order_relaxed);
  // The next op must not be noted before.
  std::atomic_signal_fence(std::memory_order_release);
}

std::optional<busy_workers::work>
busy_workers::on(std::size_t worker) const noexcept {
  const auto& from = notes_[worker];
  work found;
  found.op = from.op.load(std::memory_order_relaxed);
  if (found.op == no_handle)
    return std::nullopt;
  std::atomic_signal_fence(std::memory_order_acquire);
  found.step = from.step.load(std::memory_order_relaxed);
  found.since = from.since.load(std::memory_order_relaxed);
  found.thread = from.thread.load(std::memory_order_relaxed);
  found.is_help = from.is_help.load(std::memory_order_relaxed);
  return found;
}

} // namespace troupe::actors
