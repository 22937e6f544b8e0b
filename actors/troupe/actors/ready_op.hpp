// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <cstdint>
#include <string>

namespace troupe::actors {

/// What a stream takes and launches: an op that is ready.
class ready_op : public job {
public:
  explicit ready_op(std::int32_t op_priority = 0) : priority(op_priority) {}

  virtual const graph::op_handle& op() const noexcept = 0;
  /// The name of its handle.
  virtual std::string op_name() const = 0;
  /// Makes the step that the op is ready for fail. By its stream, before `run`.
  virtual void fail_step(error reason) = 0;

  /// Link for the list of its stream.
  ready_op* next_in_stream = nullptr;
  /// Higher ones are launched first.
  std::int32_t priority;

protected:
  ~ready_op() = default;
};

} // namespace troupe::actors
