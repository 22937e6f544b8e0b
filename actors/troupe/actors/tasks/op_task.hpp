// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/step_state.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/kernels/stream.hpp>

#include <exception>

namespace troupe::actors {

/// For tasks that are always done when they return.
class no_completion final : public completion {
public:
  void completed(std::exception_ptr) noexcept override { TROUPE_ASSERT(false); }
};

/// The work of an op handle: a kernel, a collective, a fetch. The engine runs
/// it once per step, never concurrently with itself.
class op_task {
public:
  virtual ~op_task() = default;

  /// Computes the step's outputs from its inputs, on the op's stream. Throws on
  /// failure.
  ///
  /// A task that returns `pending` has only started. It calls `whole.completed`
  /// once, from any thread, when its outputs are available or it has failed.
  /// Such ops must be known in advance (wiring_options::ends_later); all others
  /// return `done`.
  virtual launch_status run(step_state& step, completion& whole) = 0;

  /// Called instead of `run` in a failed step. A task for which others wait (a
  /// rank of a collective, a transfer) must still take part, as failed.
  virtual launch_status skip(step_state& step, completion& whole) {
    (void)step;
    (void)whole;
    return launch_status::done;
  }
};

} // namespace troupe::actors
