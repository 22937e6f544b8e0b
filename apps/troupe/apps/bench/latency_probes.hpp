// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/data/samples.hpp>

#include <cstddef>
#include <cstdint>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::apps {

/// One-way latency of a message between two threads that spin on it: the
/// minimum on this machine. `gap_ns` pass between two messages. The threads are
/// pinned to two cores.
samples handshake_times(std::size_t rounds, std::uint64_t gap_ns);

/// Time from the end of an op until an op that it made ready runs on the other
/// worker of an executor with two workers. The other worker had nothing to do
/// for `gap_ns`. Takes at least `rounds` samples over several steps. The first
/// hand-off of a step does not count, because the worker may have slept.
samples handoff_times(std::size_t rounds, std::uint64_t gap_ns);

/// A net of levels. Each level has two ops that wait for both ops of the
/// previous level.
struct level_net {
  std::int64_t levels = 20;
  std::uint64_t op_ns = 100'000; ///< time of each op, which keeps its core busy

  /// Minimum time of a step on two workers.
  double ideal_ns() const { return static_cast<double>(op_ns) * levels; }
};

/// Wall time of steps on two workers.
/// @param system null: the executor makes its own
samples level_times(const level_net& net, std::size_t steps,
                    caf::actor_system* system);

/// Times of an application's requests and of steps in one actor system.
struct shared_system_times {
  samples idle_requests; ///< while no step runs
  samples requests;      ///< while steps run, one after the other
  samples steps;
};

/// Runs steps in an application's actor system, on CAF's own scheduler with two
/// workers. An actor of the system gets a request every 1.7 ms: for 0.5 s
/// before the steps, and while they run.
shared_system_times shared_system(const level_net& net, std::size_t steps);

/// Processor time of the process while an executor is idle, as a share of one
/// core. It is measured from 100 ms after the last step.
double idle_share(std::uint64_t for_ns);

} // namespace troupe::apps
