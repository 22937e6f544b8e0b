// SPDX-License-Identifier: Apache-2.0
#pragma once

// CAF 1.x (written for 1.1.0): see caf.hpp.

#include <troupe/actors/caf/type_ids.hpp>

#include <caf/abstract_actor.hpp>
#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/anon_mail.hpp>
#include <caf/default_enum_inspect.hpp>
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <caf/invoke_message_result.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/message.hpp>
#include <caf/ref_counted.hpp>
#include <caf/result.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::actors {

using context = caf::scheduler*;
using message_content = caf::message;
inline constexpr bool tells_of_skipped = false;

template <class Question, class Answer>
using answers = caf::result<Answer>(Question);

// -- sending ------------------------------------------------------------------

template <class To, class... Ts>
void post(const To& to, Ts&&... content) {
  caf::anon_mail(std::forward<Ts>(content)...).send(to);
}

template <class Self, class To, class... Ts>
void send(Self& self, const To& to, Ts&&... content) {
  self->mail(std::forward<Ts>(content)...).send(to);
}

template <class Self, class To, class Delay, class... Ts>
void send_later(Self& self, const To& to, Delay delay, Ts&&... content) {
  self->mail(std::forward<Ts>(content)...).delay(delay).send(to);
}

template <class Self, class To, class Timeout, class... Ts>
auto ask(Self& self, const To& to, Timeout timeout, Ts&&... content) {
  return self->mail(std::forward<Ts>(content)...).request(to, timeout);
}

/// To an actor, or its control block.
template <class To>
void deliver(To& to, const caf::strong_actor_ptr& from, caf::message_id id,
             caf::message&& content, context ctx) {
  to.enqueue(caf::make_mailbox_element(from, id, std::move(content)), ctx);
}

inline void fulfil(caf::typed_response_promise<void>& promise) {
  promise.deliver();
}

// -- errors, options, types
// ---------------------------------------------------------

/// The code of a `caf::error` of Troupe: that of `errc` plus one.
enum class answer_code : std::uint8_t {};

inline std::string to_string(answer_code code) {
  return std::to_string(static_cast<unsigned>(code));
}
inline bool from_integer(std::uint8_t number, answer_code& code) {
  code = static_cast<answer_code>(number);
  return true;
}
bool from_string(std::string_view text, answer_code& code);
template <class Inspector>
bool inspect(Inspector& f, answer_code& code) {
  return caf::default_enum_inspect(f, code);
}

/// CAF 1.x has its own options under "caf.".
template <class Value>
void set_option(caf::actor_system_config& config, const char* name,
                Value value) {
  config.set(std::string("caf.") + name, std::move(value));
}
inline void set_option(caf::actor_system_config& config, const char* name,
                       const char* word) {
  set_option(config, name, std::string(word));
}

/// Makes CAF's table of types large enough for all of Troupe's blocks. Throws
/// error(invalid_argument) if it is not and a system exists: CAF reads the
/// table without a lock.
void reserve_type_ids();

/// Puts the block into CAF's table.
template <class Block>
void register_types() {
  static std::once_flag once;
  std::call_once(once, [] {
    reserve_type_ids();
    caf::init_global_meta_objects<Block>();
  });
}

// -- actors -------------------------------------------------------------------

class mailboxless_actor : public caf::abstract_actor {
public:
  explicit mailboxless_actor(caf::actor_config& cfg)
    : caf::abstract_actor(cfg) {}

  bool enqueue(caf::mailbox_element_ptr element, context ctx) final {
    receive(*element, ctx);
    return true; // `false` would be for ever
  }

  /// What CAF calls of each new actor: there are no metrics here.
  void setup_metrics() {}

protected:
  /// On the sender's thread, possibly on several threads at once.
  virtual void receive(caf::mailbox_element& element, context ctx) = 0;

  bool has_ended() const { return getf(is_terminated_flag); }
  /// Tells monitors and links. Only the first call has an effect.
  void end(caf::error reason, context ctx) { cleanup(std::move(reason), ctx); }

private:
  void force_close_mailbox() final {}
};

/// Something that runs once on one of CAF's workers.
class worker_task : public caf::resumable, public caf::ref_counted {
public:
  virtual void run() = 0;

  subtype_t subtype() const noexcept final { return function_object; }
  resume_result resume(context, std::size_t) final {
    run();
    return done;
  }
  void ref_resumable() const noexcept final { ref(); }
  void deref_resumable() const noexcept final { deref(); }
};

/// An actor that tells its `Hooks` what happens to it; they are made of `Seed`
/// and the actor. Called for messages while `is_on`: `arrives(message)` on any
/// thread; on the actor's `begins(actor, message)`, then `ends(result)`, or
/// `throws(has_begun)` while a handler's exception is caught. Always:
/// `starts(actor)` and `terminates(reason)`.
///
/// CAF 1.x has no function that an actor could override for a message, so this
/// looks at the message that is next before it lets CAF handle one. A message
/// that the actor skips and the one behind it are therefore told of as one.
/// Actors that set an exception handler of their own have no `throws`.
/// A message that comes after that look and is handled at once has no `begins`.
/// Monitors are told of an actor's end before `terminates` is called.
///
/// Classes that override `enqueue`, `resume`, `launch` or `on_cleanup` call
/// those of this class.
template <class Base, class Hooks>
class hooked_actor : public Base {
public:
  template <class Seed, class... Ts>
  hooked_actor(caf::actor_config& cfg, Seed seed, Ts&&... args)
    : Base(cfg, std::forward<Ts>(args)...), hooks_(std::move(seed), *this) {
    this->set_exception_handler(
      [this](caf::scheduled_actor* self, std::exception_ptr& what) {
        tell_of(what);
        return Base::default_exception_handler(self, what);
      });
  }

  using Base::enqueue;

  /// Any thread.
  bool enqueue(caf::mailbox_element_ptr message, context ctx) override {
    if (hooks_.is_on())
      hooks_.arrives(*message);
    return Base::enqueue(std::move(message), ctx);
  }

  caf::resumable::resume_result resume(context ctx, std::size_t most) override {
    if (!hooks_.is_on())
      return Base::resume(ctx, most);
    auto result = caf::resumable::resume_later;
    for (std::size_t i = 0; i < most && result == caf::resumable::resume_later;
         ++i) {
      const auto* next = this->peek_at_next_mailbox_element();
      if (next)
        hooks_.begins(*this, *next);
      has_begun_ = next != nullptr;
      result = Base::resume(ctx, 1);
      if (std::exchange(has_begun_, false))
        hooks_.ends(caf::invoke_message_result::consumed);
    }
    return result;
  }

  void launch(context ctx, bool lazy, bool hide) override {
    hooks_.starts(*this);
    Base::launch(ctx, lazy, hide);
  }

  void on_cleanup(const caf::error& reason) override {
    if (std::exchange(has_begun_, false)) // by the message being handled
      hooks_.ends(caf::invoke_message_result::consumed);
    hooks_.terminates(reason);
    Base::on_cleanup(reason);
  }

private:
  void tell_of(const std::exception_ptr& what) {
    try {
      std::rethrow_exception(what);
    } catch (...) {
      hooks_.throws(std::exchange(has_begun_, false));
    }
  }

  Hooks hooks_;
  bool has_begun_ = false; // of the message that is being handled
};

} // namespace troupe::actors

CAF_BEGIN_TYPE_ID_BLOCK(troupe_answers, troupe::actors::type_ids::answers)
CAF_ADD_TYPE_ID(troupe_answers, (troupe::actors::answer_code))
CAF_END_TYPE_ID_BLOCK(troupe_answers)

CAF_ERROR_CODE_ENUM(troupe::actors::answer_code)

namespace troupe::actors {

inline constexpr auto answer_category = caf::type_id_v<answer_code>;

inline caf::error make_answer(std::uint8_t code, std::string text) {
  return caf::make_error(static_cast<answer_code>(code), std::move(text));
}

} // namespace troupe::actors
