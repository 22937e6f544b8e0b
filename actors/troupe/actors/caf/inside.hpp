// SPDX-License-Identifier: Apache-2.0
#pragma once

// What differs between versions of CAF, and what only the library itself needs
// (see caf.hpp). Each version defines these functions in a file of its own.

#include <troupe/actors/caf/caf.hpp>

#include <caf/scheduled_actor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

namespace troupe::actors {

// -- systems ------------------------------------------------------------------

/// "0.17.6".
std::string caf_version();

/// Tells CAF of its own types; see `init_message_types`.
void init_types_of_caf();

/// The number of workers of a system's scheduler, without a stand-in.
std::size_t workers_of(caf::actor_system& system);
/// Runs `task`, to which it takes over one reference, on one of them.
void run_on_worker(caf::actor_system& system, worker_task* task);

/// The threads of a system with Troupe's scheduling policy.
struct scheduling {
  std::size_t workers = 1;
  /// One more thread, for actors while all workers run ops (`job_queue`).
  bool with_stand_in = false;
};
/// Before the system is made: its number of workers, and Troupe's scheduling
/// policy, if this CAF takes it from the configuration.
void configure_scheduler(caf::actor_system_config& config, scheduling how);
/// A system with Troupe's scheduling policy, after `configure_scheduler`.
std::unique_ptr<caf::actor_system>
make_scheduled_system(caf::actor_system_config& config, scheduling how);
/// The beginning of worker `index` of so many, on its thread: a core of its own
/// if the workers take all, and a name.
void begin_worker(std::size_t index, std::size_t workers);
/// The beginning of a stand-in, on its thread: a name.
void begin_stand_in();
/// The number of threads that CAF starts beside a system's workers.
std::size_t threads_of_caf() noexcept;

/// CAF keeps a reference to a system's logger in each thread that makes the
/// system or spawns an actor. Lets go of that of the calling thread, which
/// otherwise would have to end before the system does.
void forget_system() noexcept;

///@{
/// The actor that a system's registry has under a name; null if there is none.
/// Throws error(invalid_argument) for a name that this CAF cannot have: in 0.17
/// more than 10 characters, or others than letters, figures and underscores.
caf::strong_actor_ptr find_named(caf::actor_system& system,
                                 std::string_view name);
/// Keeps an actor that is there already.
void put_named(caf::actor_system& system, std::string_view name,
               const caf::strong_actor_ptr& actor);
void forget_named(caf::actor_system& system, std::string_view name);
///@}

// -- messages -----------------------------------------------------------------

/// Sends `content` to `to` with sender `from`.
template <class... Ts>
void post_from(const caf::strong_actor_ptr& from,
               const caf::strong_actor_ptr& to, Ts&&... content) {
  if (to)
    deliver(*to, from, caf::make_message_id(),
            caf::make_message(std::forward<Ts>(content)...), nullptr);
}

/// Answers a request; does nothing if `element` is not a request.
void answer_request(caf::mailbox_element& element, caf::message answer,
                    context ctx);

/// Tells the types of messages apart. Atoms make types of their own, because
/// they say what a message is about.
std::uint64_t types_key(const message_content& content);
/// "('feed', i32, std::vector<float>)"; in CAF 1.x atoms have the names of
/// their types.
std::string types_text(const caf::actor_system& system,
                       const message_content& content);
/// How many messages wait behind the one that is about to be handled, also
/// those that were skipped, if this CAF tells of them. On the actor's thread.
std::size_t mailbox_length(caf::scheduled_actor& self);
/// The name of the actor, or of its class if it does not have one.
std::string name_of_actor(const caf::abstract_actor& actor);
/// "user_shutdown", "runtime_error(\"text\")".
std::string reason_text(const caf::actor_system& system,
                        const caf::error& reason);

/// "troupe::tensor".
std::string type_name_of(const std::type_info& type);

// -- processes ----------------------------------------------------------------

/// CAF's actor that owns the connections to other processes.
caf::actor connection_broker(caf::actor_system& system);

} // namespace troupe::actors
