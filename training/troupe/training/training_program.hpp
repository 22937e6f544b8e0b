// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/scope.hpp>
#include <troupe/training/data/feed_info.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// A network that is trained: its programs, and what is known of its feeds.
struct training_program {
  graph::program startup; ///< gives the parameters their first values
  graph::program main;    ///< trains
  graph::program test;    ///< for evaluation: no gradients, no updates
  std::string loss;       ///< empty if the program has none
  std::vector<feed_info> feeds;
};

/// The programs of a network that has been described with layers and an
/// optimizer (`graph::network`): derives `test`, and finds `loss` and `feeds`.
/// Throws error(not_found) if the program has no loss.
training_program make_training_program(graph::program startup,
                                       graph::program main);

/// Updates the persistable outputs of the startup program's coalesce_tensor ops
/// from the parameters that they were made from. In Paddle they share memory
/// with the parameters and follow every update. Call it before saving.
void refresh_coalesced(const training_program& program, scope& parameters);

/// Writes a program folder with the parameters, atomically. Throws
/// error(io_failure).
/// @param batch samples per step, which the folder names; 0: unknown
/// @param parameters in plain layout (`executor::synchronize_parameters`)
void save_program(const training_program& program, std::int64_t batch,
                  const scope& parameters, const std::filesystem::path& folder);

} // namespace troupe
