// SPDX-License-Identifier: Apache-2.0
#pragma once

// CAF 0.17 (Debian 12 has 0.17.6): see caf.hpp.

#include <troupe/actors/caf/type_ids.hpp>

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/error.hpp>
#include <caf/execution_unit.hpp>
#include <caf/exit_reason.hpp>
#include <caf/invoke_message_result.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/ref_counted.hpp>
#include <caf/replies_to.hpp>
#include <caf/resumable.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_response_promise.hpp>
#include <caf/unit.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace troupe::actors {

using context = caf::execution_unit*;
using message_content = caf::type_erased_tuple;
inline constexpr bool tells_of_skipped = true;

template <class Question, class Answer>
struct answers_signature {
  using type = typename caf::replies_to<Question>::template with<Answer>;
};
template <class Question>
struct answers_signature<Question, void> {
  using type = caf::reacts_to<Question>;
};
template <class Question, class Answer>
using answers = typename answers_signature<Question, Answer>::type;

// -- sending ------------------------------------------------------------------

template <class To, class... Ts>
void post(const To& to, Ts&&... content) {
  caf::anon_send(to, std::forward<Ts>(content)...);
}

template <class Self, class To, class... Ts>
void send(Self& self, const To& to, Ts&&... content) {
  self->send(to, std::forward<Ts>(content)...);
}

template <class Self, class To, class Delay, class... Ts>
void send_later(Self& self, const To& to, Delay delay, Ts&&... content) {
  self->delayed_send(to, delay, std::forward<Ts>(content)...);
}

template <class Self, class To, class Timeout, class... Ts>
auto ask(Self& self, const To& to, Timeout timeout, Ts&&... content) {
  return self->request(to, timeout, std::forward<Ts>(content)...);
}

/// To an actor, or its control block.
template <class To>
void deliver(To& to, const caf::strong_actor_ptr& from, caf::message_id id,
             caf::message&& content, context ctx) {
  to.enqueue(from, id, std::move(content), ctx);
}

inline void fulfil(caf::typed_response_promise<void>& promise) {
  static_cast<caf::response_promise&>(promise).deliver(caf::unit);
}

// -- errors, options, types ---------------------------------------------------

inline constexpr auto answer_category = caf::atom("troupe");

inline caf::error make_answer(std::uint8_t code, std::string text) {
  return {code, answer_category, caf::make_message(std::move(text))};
}

// Names as std::string: CAF's string_view takes a const char* from g++ alone.
template <class Value>
void set_option(caf::actor_system_config& config, const char* name,
                Value value) {
  config.set(std::string(name), std::move(value));
}

/// The words that an option can have are atoms.
inline void set_option(caf::actor_system_config& config, const char* name,
                       const char* word) {
  config.set(std::string(name), caf::atom_from_string(std::string(word)));
}

/// CAF 0.17 tells local types apart by RTTI, and needs no table.
template <class Block>
void register_types() {}

// -- actors -------------------------------------------------------------------

class mailboxless_actor : public caf::monitorable_actor {
public:
  explicit mailboxless_actor(caf::actor_config& cfg)
    : caf::monitorable_actor(cfg) {}

  void enqueue(caf::mailbox_element_ptr element, context ctx) final {
    receive(*element, ctx);
  }

  void on_destroy() override {
    // Otherwise monitors are not told that the last handle is gone.
    end(caf::exit_reason::unreachable, nullptr);
    caf::monitorable_actor::on_destroy();
  }

protected:
  /// On the sender's thread, possibly on several threads at once.
  virtual void receive(caf::mailbox_element& element, context ctx) = 0;

  bool has_ended() const { return getf(is_cleaned_up_flag); }
  /// Tells monitors and links. Only the first call has an effect.
  void end(caf::error reason, context ctx) {
    if (!has_ended())
      cleanup(std::move(reason), ctx);
  }
};

/// Something that runs once on one of CAF's workers.
class worker_task : public caf::resumable, public caf::ref_counted {
public:
  virtual void run() = 0;

  subtype_t subtype() const final { return function_object; }
  resume_result resume(caf::execution_unit*, std::size_t) final {
    run();
    return done;
  }
  void intrusive_ptr_add_ref_impl() final { ref(); }
  void intrusive_ptr_release_impl() final { deref(); }
};

/// An actor that tells its `Hooks` what happens to it; they are made of `Seed`
/// and the actor. Called for messages while `is_on`: `arrives(message)` on any
/// thread; on the actor's `begins(actor, message)`, then `ends(result)`, or
/// `throws(has_begun)` while a handler's exception is caught. Always:
/// `starts(actor)` and `terminates(reason)`.
///
/// Classes that override `enqueue`, `consume`, `launch` or `cleanup` call those
/// of this class.
template <class Base, class Hooks>
class hooked_actor : public Base {
public:
  template <class Seed, class... Ts>
  hooked_actor(caf::actor_config& cfg, Seed seed, Ts&&... args)
    : Base(cfg, std::forward<Ts>(args)...), hooks_(std::move(seed), *this) {}

  using Base::consume;
  using Base::enqueue;

  /// Any thread.
  void enqueue(caf::mailbox_element_ptr message, context ctx) override {
    if (hooks_.is_on())
      hooks_.arrives(*message);
    Base::enqueue(std::move(message), ctx);
  }

  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    const bool is_on = hooks_.is_on();
    if (is_on)
      hooks_.begins(*this, message);
    try {
      const auto result = Base::consume(message);
      if (is_on)
        hooks_.ends(result);
      return result;
    } catch (...) {
      hooks_.throws(is_on);
      throw;
    }
  }

  void launch(context ctx, bool lazy, bool hide) override {
    hooks_.starts(*this);
    Base::launch(ctx, lazy, hide);
  }

  bool cleanup(caf::error&& reason, context ctx) override {
    hooks_.terminates(reason);
    return Base::cleanup(std::move(reason), ctx);
  }

private:
  Hooks hooks_;
};

} // namespace troupe::actors
