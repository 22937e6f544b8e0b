// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/workers/busy_workers.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/base/stacks/thread_stacks.hpp>
#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

/// The call stacks of the workers that run an op now. Workers are asked one
/// after the other, while they go on. A worker that does not answer has an
/// entry that says so; after several of them, the others are not asked. Any
/// thread.
/// @param clock of the workers' notes
/// @param begin_ns by now_ns, from which times count
std::vector<trace::worker_stack> stacks_of(const busy_workers& busy,
                                           thread_stacks& asked,
                                           const recorder& clock,
                                           std::uint64_t begin_ns);

/// The name of the innermost function that says something: one outside of the
/// C and C++ libraries. Without its parameters, cut if it is long. Empty if
/// there is none.
std::string useful_function(std::span<const code_place> frames);

} // namespace troupe::actors
