// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/graph/ssa_graph.hpp>

namespace troupe::actors {

/// An item that a stream runs: a ready op, or the start of a step.
class ready_op : public job {
public:
  /// The op; null for the start of a step.
  virtual const graph::op_handle* op() const noexcept { return nullptr; }
  /// Fails the step for which the op is ready. Called by its stream before
  /// `run`.
  virtual void fail_step(error reason) { (void)reason; }

  /// Link for the inbox of its stream.
  ready_op* next_in_stream = nullptr;

protected:
  ~ready_op() = default;
};

} // namespace troupe::actors
