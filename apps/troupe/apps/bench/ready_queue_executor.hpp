// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <memory>

namespace troupe::apps {

/// Runs a program's steps on one device with the kernels, graph and values of
/// `executor` but without its actors: threads take ready ops from a shared
/// queue. The actors are compared with it.
///
/// Thread rule: one thread at a time.
class ready_queue_executor {
public:
  /// Builds the graph that an `executor` with these options runs, with the same
  /// passes. `options.loss` and `options.kernels` must be set. Throws as
  /// `executor` does, and error(invalid_argument) for several devices.
  ready_queue_executor(std::shared_ptr<const graph::program> main,
                       const executor_options& options);
  ~ready_queue_executor();

  /// Runs one step and returns the loss of the batch.
  double run(const feed_map& feeds);

  /// Number of op handles in the graph.
  std::size_t ops() const noexcept;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe::apps
