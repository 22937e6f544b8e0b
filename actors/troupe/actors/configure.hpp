// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace caf {
class actor_system;
class actor_system_config;
} // namespace caf

namespace troupe {

/// The number of workers of an executor: `threads`, but at most one per core
/// that this process may use; 0: one per core.
std::size_t worker_count(int threads);

/// Tells CAF of the messages of Troupe's actors. CAF 1.x needs to know them
/// before the first actor system is made. `configure`, `make_actor_system` and
/// executors that make their own system call this, so that only a program that
/// makes a system without them must. In CAF 0.17 it does nothing. Throws
/// error(invalid_argument) if an actor system exists already. Thread rule: any
/// thread; a second call has no effect.
void init_message_types();

/// Installs Troupe's scheduling policy in `cfg`: workers take their jobs from a
/// Troupe queue. If there are as many workers as cores, each worker is pinned
/// to a core. CAF's own actors use the same queue. One more thread runs them
/// while all workers run ops, so that their messages need not wait for an op to
/// end. Call this before the actor system is created. Throws like
/// `require_system_threads` and `init_message_types`, which it calls.
///
/// CAF 1.x does not take a scheduler from a configuration. There, this sets the
/// number of workers only, and the system lends its workers to executors while
/// steps run; `make_actor_system` gives a system with the policy.
/// @param threads as in `worker_count`
void configure(caf::actor_system_config& cfg, int threads = 0);

/// A system with Troupe's scheduling policy, in every version of CAF: calls
/// `configure` first.
/// @param cfg must outlive the system
std::unique_ptr<caf::actor_system>
make_actor_system(caf::actor_system_config& cfg, int threads = 0);

/// Throws error(kernel_failure) unless the process can now start the threads of
/// an actor system with so many workers. CAF ends the process if one of
/// them does not start, so call this before such a system is created.
void require_system_threads(std::size_t workers);

} // namespace troupe
