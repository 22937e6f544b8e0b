// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/caf/caf.hpp>

#include <mutex>
#include <utility>

namespace troupe::actors {

/// Where threads that work for an actor leave their results. They cannot hold
/// the actor's address: if they let go of it last, they would destroy the
/// actor, and with it what they work on.
///
/// The actor closes its door before it destroys what those threads use, and
/// keeps itself alive while there is work outside.
class actor_door {
public:
  explicit actor_door(caf::abstract_actor& inside) : inside_(&inside) {}

  /// Sends `content` to the actor, without a sender; does nothing if the door
  /// is closed. Any thread.
  template <class... Ts>
  void leave(Ts&&... content) {
    std::lock_guard guard{mutex_};
    if (inside_)
      deliver(*inside_, nullptr, caf::make_message_id(),
              caf::make_message(std::forward<Ts>(content)...), nullptr);
  }

  void close() {
    std::lock_guard guard{mutex_};
    inside_ = nullptr;
  }

private:
  std::mutex mutex_;
  caf::abstract_actor* inside_; // guarded by the mutex
};

} // namespace troupe::actors
