// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/step_state.hpp>

namespace troupe::actors {

/// What an op handle does once it is ready: a kernel, a collective, a fetch.
/// The op actor owns it and runs it once a step, never twice at a time.
class op_task {
public:
  virtual ~op_task() = default;

  /// Computes the step's outputs from its inputs, on the stream of its op.
  /// Throws on failure.
  virtual void run(step_state& step) = 0;
};

} // namespace troupe::actors
