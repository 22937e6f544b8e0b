// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/apps/training/train_run.hpp>

#include <cstdint>
#include <memory>

namespace troupe::apps {

/// The options of the executor that trains, except what a trial of devices and
/// the data decide.
executor_options make_train_options(const train_options& options,
                                    const program_bundle& bundle);
/// The parameters with which the training begins: those of the startup program,
/// or of `--params`.
/// @param memory host memory for those that are read
std::shared_ptr<scope> make_parameters(const train_options& options,
                                       const program_bundle& bundle,
                                       arena& memory);
/// Samples of a training's first step. Opens its data if it has any.
std::int64_t samples_per_step(const train_options& options,
                              const program_bundle& bundle);

} // namespace troupe::apps
