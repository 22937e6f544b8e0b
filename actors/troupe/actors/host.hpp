// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/caf/inside.hpp>

#include <atomic>
#include <utility>

namespace troupe::actors {

/// A CAF actor without a mailbox: `on_message` is called on the sender's
/// thread, possibly by several threads at once. It has an address, can be
/// monitored and linked, and answers requests. It terminates on an exit
/// message, on `retire`, or when its last handle is destroyed.
class actor_base : public mailboxless_actor {
public:
  using mailboxless_actor::mailboxless_actor;

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

private:
  /// Entry point of all CAF messages. Edges that are counters never call it.
  void receive(caf::mailbox_element& element, context ctx) final;
  void handle(caf::mailbox_element& element, context ctx);

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

/// The object behind a handle that `make` returned.
template <class T>
T& object_of(const caf::strong_actor_ptr& handle) {
  return *static_cast<T*>(caf::actor_cast<caf::abstract_actor*>(handle));
}

} // namespace troupe::actors
