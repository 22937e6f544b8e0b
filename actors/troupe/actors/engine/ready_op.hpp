// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/graph/ssa_graph.hpp>

namespace troupe::actors {

/// What a stream takes and runs: an op that is ready, or the start of a step.
class ready_op : public job {
public:
  /// Null: the start of a step.
  virtual const graph::op_handle* op() const noexcept { return nullptr; }
  /// Makes the step that the op is ready for fail. By its stream, before `run`.
  virtual void fail_step(error reason) { (void)reason; }

  /// Link for the inbox of its stream.
  ready_op* next_in_stream = nullptr;

protected:
  ~ready_op() = default;
};

} // namespace troupe::actors
