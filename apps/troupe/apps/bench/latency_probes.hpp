// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/data/samples.hpp>

#include <cstddef>
#include <cstdint>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::apps {

/// How long a message between two threads takes that do nothing but look for
/// it, one way: the least that a machine can do. `gap_ns` go by between two
/// messages. The threads are pinned to two cores.
samples handshake_times(std::size_t rounds, std::uint64_t gap_ns);

/// How long it takes from the end of an op, in an executor of its own with two
/// workers, until the op that it made ready runs on the other worker, which had
/// nothing to do for `gap_ns`. Over several steps, without the first hand-over
/// of each, before which that worker may have slept. At least `rounds` times.
samples handoff_times(std::size_t rounds, std::uint64_t gap_ns);

/// A net of levels, each of two ops that wait for both ops of the level before.
struct level_net {
  std::int64_t levels = 20;
  std::uint64_t op_ns = 100'000; ///< of each op, which keeps its core busy

  /// The least time of a step on two workers.
  double ideal_ns() const { return static_cast<double>(op_ns) * levels; }
};

/// Wall time of steps on two workers.
/// @param system null: of the executor's own
samples level_times(const level_net& net, std::size_t steps,
                    caf::actor_system* system);

/// What an application's actors see beside an executor in their system.
struct shared_system_times {
  samples idle_requests; ///< while no step runs
  samples requests;      ///< while steps run one after the other
  samples steps;
};

/// Runs steps in an application's actor system on CAF's own scheduler with two
/// workers, and asks an actor in it every 1.7 ms meanwhile.
shared_system_times shared_system(const level_net& net, std::size_t steps);

/// Processor time that the process takes while an executor that has run steps
/// has nothing to do, from 100 ms after the last step on, as a share of one
/// core.
double idle_share(std::uint64_t for_ns);

} // namespace troupe::apps
