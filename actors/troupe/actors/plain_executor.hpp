// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <atomic>
#include <functional>

namespace troupe {

/// Called before or after each op of a plain executor. The arguments are the
/// op, its number in the main block, and the device's number.
using op_hook = std::function<void(const graph::op_desc&, std::size_t op,
                                   std::size_t device)>;

/// How a program is run. Members have the same meaning as in
/// `executor_options`.
struct plain_executor_options {
  std::vector<device_id> devices{device_id{}};
  /// Parameters whose gradients are merged over the devices. Each gradient is
  /// merged right after the op that computes it. Empty: all parameters.
  std::vector<std::string> parameter_names = {};
  std::string loss = {};
  std::uint64_t seed = 0;
  op_hook before_op = {};
  op_hook after_op = {};
  std::shared_ptr<scope> parameters = {};
  std::shared_ptr<const kernel_table> kernels = {};
  /// When any thread sets this flag, `run` ends with error(cancelled) at the
  /// next op or the next loop iteration.
  const std::atomic<bool>* stop = nullptr;
};

/// Runs the ops of a program one after the other in program order, each op on
/// each device in turn. Merges the gradients of the given parameters once all
/// devices have computed them. Uses no graph, no actors and no threads. Tests
/// compare executors against it.
///
/// Source: "ParallelExecutor Design Doc" of Paddle Fluid, sections Design and
/// CallBack (BeforeOp, AfterOp).
class plain_executor {
public:
  /// Throws error(unsupported_op) listing all ops without a kernel, and
  /// error(not_found) if the program has no such loss.
  explicit plain_executor(const graph::program& main,
                          plain_executor_options options = {});
  ~plain_executor();

  /// Like `executor::run`. Any dense variable of the program can be fetched.
  step_result run(const feed_map& feeds,
                  std::span<const std::string> fetches = {});
  /// The scope given in the options, or the executor's own.
  scope& parameters() noexcept;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
