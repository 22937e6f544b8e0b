// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace caf {
class actor_system_config;
} // namespace caf

namespace troupe {

/// Installs Troupe's scheduling policy in `cfg`: workers take their jobs from a
/// Troupe queue. If there are as many workers as cores, each worker is pinned
/// to a core. CAF's own actors use the same queue. Call this before the actor
/// system is created.
/// @param threads number of workers, at most one per core; 0: one per core
void configure(caf::actor_system_config& cfg, int threads = 0);

} // namespace troupe
