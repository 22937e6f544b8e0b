// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace caf {
class actor_system_config;
} // namespace caf

namespace troupe {

/// The number of workers of an executor: `threads`, but at most one per core
/// that this process may use; 0: one per core.
std::size_t worker_count(int threads);

/// Installs Troupe's scheduling policy in `cfg`: workers take their jobs from a
/// Troupe queue. If there are as many workers as cores, each worker is pinned
/// to a core. CAF's own actors use the same queue. Call this before the actor
/// system is created. Throws like `require_system_threads`, which it calls.
/// @param threads as in `worker_count`
void configure(caf::actor_system_config& cfg, int threads = 0);

/// Throws error(kernel_failure) unless the process can now start the threads of
/// an actor system with so many workers. CAF 0.17 ends the process if one of
/// them does not start, so call this before such a system is created.
void require_system_threads(std::size_t workers);

} // namespace troupe
