// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <atomic>
#include <functional>

namespace troupe {

/// Called around each op of a plain executor: the op, its number in the main
/// block, the device's number.
using op_hook = std::function<void(const graph::op_desc&, std::size_t op,
                                   std::size_t device)>;

/// How a program is run; names mean what they mean in `executor_options`.
struct plain_executor_options {
  std::vector<device_id> devices{device_id{}};
  /// Parameters whose gradients are merged over the devices after the op that
  /// makes them; empty: all parameters of the program.
  std::vector<std::string> parameter_names = {};
  std::string loss = {};
  std::uint64_t seed = 0;
  op_hook before_op = {};
  op_hook after_op = {};
  std::shared_ptr<scope> parameters = {};
  std::shared_ptr<const kernel_table> kernels = {};
  /// Once it is set, by any thread, `run` ends with error(cancelled) at the
  /// next op or the next round of a loop.
  const std::atomic<bool>* stop = nullptr;
};

/// Runs the ops of a program one after the other in program order, on each
/// device in turn, and merges the gradients of the given parameters when all
/// devices have made them. No graph, no actors, no threads: the oracle that
/// executors are tested against.
///
/// Source: "ParallelExecutor Design Doc" of Paddle Fluid, sections Design and
/// CallBack (BeforeOp, AfterOp).
class plain_executor {
public:
  /// Throws error(unsupported_op) listing ops without a kernel and
  /// error(not_found) for a loss that the program lacks.
  explicit plain_executor(const graph::program& main,
                          plain_executor_options options = {});
  ~plain_executor();

  /// Like executor::run; any dense variable of the program can be fetched.
  step_result run(const feed_map& feeds,
                  std::span<const std::string> fetches = {});
  /// The scope of the options, or its own.
  scope& parameters() noexcept;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
