// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/trace_recording.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/trace/phase_log.hpp>

#include <cstddef>
#include <memory>

namespace troupe::actors {

class engine;

/// What a trace says of a run before its first event.
/// @param g with its data edges
/// @param runs the graph
/// @param workers of the process
trace::process_trace trace_head_of(const executor_options& options,
                                   const graph::program& p,
                                   const graph::ssa_graph& g,
                                   const engine& runs, std::size_t workers);

/// Begins the trace that an executor's options ask for, or TROUPE_TRACE if they
/// say nothing. Null if there is none. Throws what `trace_recording` throws.
/// @param g with its data edges
/// @param made what the executor did until now
std::unique_ptr<trace_recording>
start_trace(const executor_options& options, const graph::program& p,
            const graph::ssa_graph& g, const engine& runs, recorder& from,
            std::size_t workers, const trace::phase_log& made);

} // namespace troupe::actors
