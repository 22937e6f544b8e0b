// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "small_program.hpp"

#include <cstdint>
#include <random>

namespace troupe::graph::testing {

/// Up to eight ops that read and write fed, temporary and persistable
/// variables at random, in place or not.
small_program random_program(std::uint64_t seed);

/// A program that trains: forward ops, a gradient for each of a few
/// parameters, updates with state, and at random what makes merging hard: a
/// norm over several gradients, counters shared by updates, clipped gradients,
/// a forward op that reads an update's state, a backward op that reads a
/// complete gradient. Updates read no values that differ between devices.
small_program random_training_program(std::uint64_t seed);

/// Devices, strategy, sharing, fusing limit and fetches among `p`'s variables.
build_options random_options(const small_program& p, std::uint64_t seed);

} // namespace troupe::graph::testing
