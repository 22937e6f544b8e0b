// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/placement.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/scope.hpp>

namespace troupe::actors {

/// Clears the variables in a process's scope that steps update on devices of
/// other processes only. With the strategies reduce and replicate these are
/// optimizer state, which thus needs memory in one process only (ZeRO-1,
/// Rajbhandari et al., 2020).
void drop_state_of_others(const graph::ssa_graph& g, const placement& where,
                          scope& parameters);

/// Copies such variables to the scope of process 0, if that has a device.
/// Called in all processes while no step runs, after the same number of steps;
/// waits for the others. The values are plain. Throws the error of a process
/// that fails or is lost.
void gather_state(const graph::ssa_graph& g, const placement& where,
                  scope& parameters, collective_ranks& ranks);

} // namespace troupe::actors
