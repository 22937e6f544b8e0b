// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/tensor.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Tensors by slot of an op, in plain layout and in host memory.
using slot_tensors = std::map<std::string, std::vector<tensor>, std::less<>>;

/// What an op outside of the graph is to compute.
struct outside_question {
  std::string op; ///< name of its type
  std::string device;
  step_id step = 0;
  slot_tensors inputs; ///< nobody may write to them
  attribute_map attributes;
};

/// The outputs of all slots, or why there are none.
struct outside_answer {
  slot_tensors outputs;
  std::optional<error> failure;
};

/// Computes ops outside of the graph's streams: by an actor of the application
/// (actor_op.hpp), another library, or another machine. Such an op starts like
/// any other, when its inputs are there. Nothing waits for it but the ops that
/// read its outputs: others go on beside it, on the same device too.
///
/// See `executor_options::outside_ops`.
class outside_op {
public:
  /// Takes the answer, or why there is none.
  using answer_function = std::function<void(outside_answer)>;

  virtual ~outside_op() = default;
  /// Begins to compute, and returns. `answer` must be called exactly once, from
  /// any thread, also from within this call; the step does not end before. What
  /// this throws is the op's error; `answer` is then not called. Several ops,
  /// devices and steps may ask at the same time. Any thread.
  virtual void ask(outside_question question, answer_function answer) = 0;
};

} // namespace troupe
