// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <actors/application.hpp>
#include <troupe/training/actors/errors.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace troupe::test {

/// A limit that only a hanging test reaches.
constexpr std::chrono::seconds patience{100};

/// An application's own actor system, with Troupe's scheduling policy or
/// without.
struct host_application {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;

  explicit host_application(int threads = 2, bool is_configured = true) {
    system = is_configured
               ? make_actor_system(config, threads)
               : make_plain_system(config, static_cast<std::size_t>(threads));
  }
};

/// What an actor has answered: a `T`, or an error.
template <class T>
struct answer {
  std::optional<T> value;
  caf::error failure;

  T& get() {
    REQUIRE_MESSAGE(value.has_value(), text_of(failure));
    return *value;
  }
};

/// Asks an actor and waits for its answer.
template <class T, class Handle, class Message>
answer<T> ask(caf::scoped_actor& self, const Handle& whom, Message question) {
  answer<T> got;
  self->request(whom, patience, std::move(question))
    .receive([&](T& value) { got.value = std::move(value); },
             [&](caf::error& why) { got.failure = std::move(why); });
  return got;
}

/// The same if the answer is empty. Returns the error, if there is one.
template <class Handle, class Message>
caf::error tell(caf::scoped_actor& self, const Handle& whom, Message question) {
  caf::error failure;
  self->request(whom, patience, std::move(question))
    .receive([] {}, [&](caf::error& why) { failure = std::move(why); });
  return failure;
}

} // namespace troupe::test
