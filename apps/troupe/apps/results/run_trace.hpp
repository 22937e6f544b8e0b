// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/training/train_run.hpp>

namespace troupe::apps {

/// The trace that TROUPE_TRACE asks for, of a command that has no option for
/// one.
/// @param command with its main argument: "eval digits"
trace_options trace_from_environment(std::string command);

/// The trace of this rank's training. In an elastic job, each epoch of the job
/// has one. Throws what `parse_trace_level` throws.
trace_options trace_of(const train_options& options, const rank_part& part);

} // namespace troupe::apps
