// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/training/data/batch_source.hpp>
#include <troupe/training/data/classifier.hpp>
#include <troupe/training/training_program.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace troupe {

/// The loss and accuracy of a network on samples that it does not train on.
struct evaluation {
  double loss = 0;             ///< mean over all samples
  std::optional<hits> answers; ///< only if the network is a classifier
  std::int64_t samples = 0;
};

/// The options of an executor that runs `program.test` for `evaluate`: those
/// given, with the program's loss, and with the scores of a classifier as the
/// only fetch. Throws error(not_found) if the program has no loss.
executor_options evaluation_options(const training_program& program,
                                    executor_options given);

/// Loss and accuracy of one step, whose result has the fetches of
/// `evaluation_options`. Throws error(not_found) if it lacks them.
/// @param feeds of the step
evaluation evaluation_of(const training_program& program, const feed_map& feeds,
                         const step_result& result);

/// Runs the first `steps` batches of an epoch of `source`; the epoch begins
/// again if it has fewer. Throws the error of a failed step.
/// @param exe of `program.test`, made with `evaluation_options`
/// @param stop called before each step, and when one was cancelled; can be
///   empty. If it returns true, the evaluation ends with an error(cancelled)
///   that says how many steps were done.
evaluation evaluate(executor& exe, const training_program& program,
                    batch_source& source, std::uint64_t steps,
                    const std::function<bool()>& stop = {});

/// Copies of those tensors of `parameters` that are persistable in `program`,
/// in host memory. An executor on the copies does not disturb a training.
/// `parameters` must be in plain layout (`executor::synchronize_parameters`).
/// Call it while no step uses them.
std::shared_ptr<scope> copy_parameters(const scope& parameters,
                                       const graph::program& program);

} // namespace troupe
