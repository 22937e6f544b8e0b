// SPDX-License-Identifier: Apache-2.0
#pragma once

// Isolates the version of CAF. All other code derives from `actor_base` and
// uses the functions below. Porting to CAF 1.x changes only host.hpp, host.cpp,
// traced_actor.hpp, traced_actor.cpp, configure.cpp and worker_pool.cpp.

#include <troupe/base/error.hpp>

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/config.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/message.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include <atomic>
#include <utility>

#if CAF_MAJOR_VERSION != 0
#error "host.hpp is written for CAF 0.17; see docs/actors.md on porting"
#endif

namespace troupe::actors {

/// The execution context that currently runs an actor; can be null.
using context = caf::execution_unit*;

/// A CAF actor without a mailbox: `on_message` is called on the sender's
/// thread, possibly by several threads at once. It has an address, can be
/// monitored and linked, and answers requests. It terminates on an exit
/// message, on `retire`, or when its last handle is destroyed.
class actor_base : public caf::monitorable_actor {
public:
  explicit actor_base(caf::actor_config& cfg) : caf::monitorable_actor(cfg) {}

  /// Entry point of all CAF messages. Edges that are counters never call it.
  void enqueue(caf::mailbox_element_ptr element, context ctx) final;

  void on_destroy() override;

  /// Terminates the actor from within. Monitors get `user_shutdown` unless it
  /// has terminated already. No further message reaches `on_message` or
  /// `on_exit`, and `retire` waits for calls in progress. After that, the
  /// objects that the actor uses can be destroyed, even if others still hold
  /// its address. Must not be called while handling a message. Calling it again
  /// has no effect.
  void retire();

protected:
  /// Handles a message other than an exit message. Returns false if the actor
  /// does not support the message; requests are then answered with an error.
  virtual bool on_message(caf::mailbox_element& element, context ctx) = 0;
  /// True if the actor terminates on `exit`.
  virtual bool obeys(const caf::exit_msg& exit) const {
    (void)exit;
    return true;
  }
  /// Called once when an exit message terminates the actor, before monitors are
  /// notified.
  virtual void on_exit(const caf::error& reason) { (void)reason; }

  /// Answers a request; does nothing if `element` is not a request.
  static void reply(caf::mailbox_element& element, caf::message answer,
                    context ctx);

private:
  void receive(caf::mailbox_element& element, context ctx);

  // Number of messages being handled, plus `closed` once retired. A message
  // first increments the count, then checks it (acquire). `retire` first closes
  // the actor, then waits for the count. So either the message finds the actor
  // closed and leaves, or `retire` sees the message.
  static constexpr int closed = 1 << 30;
  std::atomic<int> gate_{0};
};

/// Creates an actor of type `T` that is not in CAF's registry; only its handles
/// keep it alive.
template <class T, class... Ts>
caf::strong_actor_ptr make(caf::actor_system& sys, Ts&&... args) {
  caf::actor_config cfg;
  return caf::make_actor<T, caf::strong_actor_ptr>(
    sys.next_actor_id(), sys.node(), &sys, cfg, std::forward<Ts>(args)...);
}

/// Sends `content` to `to` with sender `from`.
template <class... Ts>
void post_from(const caf::strong_actor_ptr& from,
               const caf::strong_actor_ptr& to, Ts&&... content) {
  if (to)
    to->enqueue(from, caf::make_message_id(),
                caf::make_message(std::forward<Ts>(content)...), nullptr);
}

/// The object behind a handle that `make` returned.
template <class T>
T& object_of(const caf::strong_actor_ptr& handle) {
  return *static_cast<T*>(caf::actor_cast<caf::abstract_actor*>(handle));
}

} // namespace troupe::actors
