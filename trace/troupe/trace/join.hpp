// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <vector>

namespace troupe::trace {

/// Makes one trace of those of the processes of a run, for viewers that play
/// the events of one: as if one process had run all devices. Workers and actors
/// are numbered through, those of the first process first. A step begins with
/// its first begin and ends with its last end. Phases and call stacks keep
/// their order; phases of a job are named after their rank. One trace is left
/// as it is.
///
/// @param parts at least one, on one clock (merge_clocks)
process_trace join(std::vector<process_trace> parts);

} // namespace troupe::trace
