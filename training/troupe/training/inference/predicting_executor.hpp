// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/training/prediction.hpp>

#include <cstdint>
#include <memory>

namespace troupe::inference {

class request_queue;

/// A program with parameters that nobody else has. Thread rule: that of an
/// executor.
class predicting_executor {
public:
  /// Runs the example, if there is one. Throws what the executor, the queue and
  /// the example's steps throw, and error(invalid_argument) without parameters.
  predicting_executor(std::shared_ptr<const graph::program> program,
                      const predictor_options& options,
                      const request_queue& queue, const parameter_set& from);

  executor& exe() noexcept { return exe_; }
  /// Of the run that made the parameters.
  std::uint64_t steps() const noexcept { return steps_; }

private:
  void run_example(const predictor_options& options,
                   const request_queue& queue);
  void run_copies(const predictor_options& options, std::int64_t samples,
                  std::size_t copies);

  std::uint64_t steps_;
  executor exe_;
};

} // namespace troupe::inference
