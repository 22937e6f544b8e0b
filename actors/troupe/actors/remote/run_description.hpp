// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstddef>
#include <string>

namespace troupe::actors {

/// Describes everything on which the processes of a run must agree, one item
/// per line: options; the program with its attributes, handles and edges; and
/// the values that devices of several processes read before a step writes them
/// (parameters, learning rate, loss scale). Statistics that each device keeps
/// for itself are omitted. Equal runs give equal descriptions on every machine.
/// @param loss the loss variable's name, found or given
/// @param options must have `nodes`; `lowering.batch` and settings of a single
///   process (threads, form, trace) are not described
/// @param parameters spread over the devices
std::string describe_run(const executor_options& options,
                         const std::string& loss, const graph::ssa_graph& graph,
                         scope& parameters);

/// The first line in which process `process` differs from process 0, as part of
/// an error message: "steps_in_flight: 2 in process 0, 4 in process 1". Empty
/// if they are equal.
std::string first_difference(const std::string& of_first,
                             const std::string& of_other, std::size_t process);

} // namespace troupe::actors
