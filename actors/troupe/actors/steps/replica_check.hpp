// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/placement.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/scope.hpp>

namespace troupe::actors {

/// Compares the values of variables that must be the same on several devices:
/// all persistable variables that these use, except their own statistics. Does
/// not compare bytes, but their hashes.
///
/// Called while no step runs; in a run over several processes in all of them,
/// after the same number of steps. Throws error(invalid_argument) that names
/// the first such variable, and the devices whose value differs from that of
/// most devices; in all processes the same.
/// @param ranks of devices in several processes; null if all are in this one
void require_same_replicas(const graph::ssa_graph& g, const placement& where,
                           const scope& parameters, collective_ranks* ranks);

} // namespace troupe::actors
