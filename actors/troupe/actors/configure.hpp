// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace caf {
class actor_system_config;
} // namespace caf

namespace troupe {

/// Makes the workers of a system built from `cfg` take their jobs from a
/// Troupe queue, each pinned to a core if there are as many as cores. Call it
/// before the actor system is made. CAF's own actors wait in the same queue and
/// lose nothing.
/// @param threads workers; 0: one per usable core; at most as many as cores
void configure(caf::actor_system_config& cfg, int threads = 0);

} // namespace troupe
