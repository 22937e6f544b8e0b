// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only file that knows which CAF this is. All other code derives from
// `actor_base` and uses the functions below; porting to CAF 1.x changes this
// header, configure.cpp and worker_pool.cpp alone.

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

/// Whatever runs an actor just now; may be null.
using context = caf::execution_unit*;

/// A CAF actor without a mailbox: `on_message` is called in the sender's
/// thread, possibly by several at once. Has an address, can be monitored,
/// linked and asked, ends when told to exit, retired, or when its last handle
/// goes.
class actor_base : public caf::monitorable_actor {
public:
  explicit actor_base(caf::actor_config& cfg) : caf::monitorable_actor(cfg) {}

  /// Everybody's door; never called on the counting path.
  void enqueue(caf::mailbox_element_ptr element, context ctx) final;

  void on_destroy() override;

  /// Ends the actor from within: monitors hear `user_shutdown` unless it has
  /// ended already, and no message reaches `on_message` or `on_exit` any more;
  /// waits for those that are inside. What the actor works on may go then,
  /// though others hold its address. Not from inside a message; again: nothing.
  void retire();

protected:
  /// Handles `element`, which is no exit message. Returns false if the actor
  /// does not know such a message; requests are then answered with an error.
  virtual bool on_message(caf::mailbox_element& element, context ctx) = 0;
  /// Whether the actor ends when `exit` tells it to.
  virtual bool obeys(const caf::exit_msg& exit) const {
    (void)exit;
    return true;
  }
  /// Called once when the actor ends by an exit message, before monitors hear.
  virtual void on_exit(const caf::error& reason) { (void)reason; }

  /// Answers a request; does nothing if `element` is none.
  static void reply(caf::mailbox_element& element, caf::message answer,
                    context ctx);

private:
  void receive(caf::mailbox_element& element, context ctx);

  // Messages inside, plus `closed` once retired. A message adds itself first
  // and looks then (acquire): it either finds the gate closed and leaves, or
  // `retire`, which closes it and waits, sees it inside.
  static constexpr int closed = 1 << 30;
  std::atomic<int> gate_{0};
};

/// Creates an actor of type `T` that counts as a handle only (no registry).
template <class T, class... Ts>
caf::strong_actor_ptr make(caf::actor_system& sys, Ts&&... args) {
  caf::actor_config cfg;
  return caf::make_actor<T, caf::strong_actor_ptr>(
    sys.next_actor_id(), sys.node(), &sys, cfg, std::forward<Ts>(args)...);
}

/// Sends `content` to `to` in the name of `from`.
template <class... Ts>
void post_from(const caf::strong_actor_ptr& from,
               const caf::strong_actor_ptr& to, Ts&&... content) {
  if (to)
    to->enqueue(from, caf::make_message_id(),
                caf::make_message(std::forward<Ts>(content)...), nullptr);
}

/// Sends `content` to `to` without a sender.
template <class... Ts>
void post(const caf::strong_actor_ptr& to, Ts&&... content) {
  post_from(nullptr, to, std::forward<Ts>(content)...);
}

/// The object behind a handle that `make` returned.
template <class T>
T& object_of(const caf::strong_actor_ptr& handle) {
  return *static_cast<T*>(caf::actor_cast<caf::abstract_actor*>(handle));
}

} // namespace troupe::actors
