// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/step_state.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/kernels/stream.hpp>

#include <exception>

namespace troupe::actors {

/// For tasks that are known to be done when they return.
class no_completion final : public completion {
public:
  void completed(std::exception_ptr) noexcept override { TROUPE_ASSERT(false); }
};

/// What an op handle does once it is ready: a kernel, a collective, a fetch.
/// The engine runs it once a step, never twice at a time.
class op_task {
public:
  virtual ~op_task() = default;

  /// Computes the step's outputs from its inputs, on the stream of its op.
  /// Throws on failure.
  ///
  /// A task that returns `pending` has begun only: it calls `whole.completed`
  /// once, from any thread, when its outputs are there or it has failed. Such
  /// ops are known before (wiring_options::ends_later); all others return
  /// `done`.
  virtual launch_status run(step_state& step, completion& whole) = 0;

  /// Instead of `run` in a step that has failed. A task on which others wait
  /// elsewhere (a rank of a collective, a transfer) takes part all the same, as
  /// one that failed.
  virtual launch_status skip(step_state& step, completion& whole) {
    (void)step;
    (void)whole;
    return launch_status::done;
  }
};

} // namespace troupe::actors
