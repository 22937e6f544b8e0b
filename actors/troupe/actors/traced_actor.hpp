// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the messages of an application's own CAF actors beside what the ops
// of an executor do: in its trace, and on its dashboard. docs/trace.md has an
// example.
//
// As host.hpp, this header and traced_actor.cpp depend on the version of CAF.

#include <troupe/base/recorder.hpp>

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/behavior.hpp>
#include <caf/config.hpp>
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/execution_unit.hpp>
#include <caf/invoke_message_result.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/scheduled_actor.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#if CAF_MAJOR_VERSION != 0
#error "traced_actor.hpp is written for CAF 0.17; see docs/actors.md on porting"
#endif

namespace troupe {

namespace actors {

/// Records what happens to one actor. The part of `traced` that does not depend
/// on its base.
class message_trace {
public:
  /// Gives the actor a number. It has no name before `set_name`.
  message_trace(std::shared_ptr<recorder> to, const caf::scheduled_actor& self);

  /// One relaxed load.
  bool is_on() const noexcept { return to_->wants(trace_level::messages); }

  /// Uses `caf::local_actor::name`, or the name of the class if it has not been
  /// overridden.
  void set_name(const caf::scheduled_actor& self);
  /// The message is about to be put into the mailbox. Any thread.
  void arrives(const caf::mailbox_element& message) noexcept;
  /// The actor begins to handle the message. On its own thread, as the rest.
  void begins(caf::scheduled_actor& self,
              const caf::mailbox_element& message) noexcept;
  /// The handler has returned.
  void ends(caf::invoke_message_result result) noexcept;
  /// Called while an exception of a handler is caught.
  /// @param has_begun `begins` was called
  void throws(bool has_begun) noexcept;
  /// The actor has ended. Only the first call counts.
  void terminates(const caf::error& reason) noexcept;

private:
  std::shared_ptr<recorder> to_;
  const caf::actor_system& system_; // outlives its actors
  actor_number number_;
  std::string thrown_; // what the handler's exception said
};

} // namespace actors

/// An actor whose messages a recorder records: who sent each, of which types,
/// when it arrived, when and for how long it was handled, and how many messages
/// waited behind it. Also how the actor ended.
///
/// `Base` is a class of CAF that is scheduled and has a mailbox, such as
/// `caf::event_based_actor`, or a class that is derived from one:
///
///     class reporter : public troupe::traced<caf::event_based_actor> {
///     public:
///       reporter(caf::actor_config& cfg, std::shared_ptr<troupe::recorder> to)
///         : traced(cfg, std::move(to)) {}
///       const char* name() const override { return "reporter"; }
///       ...
///     };
///     system.spawn<reporter>(exe.shared_trace());
///
/// The actor belongs to the recorder that it was given, and may outlive its
/// executor; nothing is recorded then. Messages are recorded at level
/// `trace_level::messages`. At other levels, a message costs one relaxed load
/// when it is sent and one when it is handled. Messages of streams are not
/// recorded. Of the first `actor_table::most_actors` actors, those that send
/// included.
///
/// Derived classes that override `enqueue`, `consume`, `launch` or `cleanup`
/// call those of this class.
template <class Base>
class traced : public Base {
public:
  /// @param to `executor::shared_trace`; not null
  /// @param args passed to the constructor of `Base`
  template <class... Ts>
  traced(caf::actor_config& cfg, std::shared_ptr<recorder> to, Ts&&... args)
    : Base(cfg, std::forward<Ts>(args)...), trace_(std::move(to), *this) {}

  using Base::consume;
  using Base::enqueue;

  /// Any thread.
  void enqueue(caf::mailbox_element_ptr message,
               caf::execution_unit* host) override {
    if (trace_.is_on())
      trace_.arrives(*message);
    Base::enqueue(std::move(message), host);
  }

  /// On the actor's thread.
  caf::invoke_message_result consume(caf::mailbox_element& message) override {
    const bool is_on = trace_.is_on();
    if (is_on)
      trace_.begins(*this, message);
    try {
      const auto result = Base::consume(message);
      if (is_on)
        trace_.ends(result);
      return result;
    } catch (...) {
      trace_.throws(is_on);
      throw;
    }
  }

  /// Called once, when the actor starts.
  void launch(caf::execution_unit* host, bool lazy, bool hide) override {
    trace_.set_name(*this);
    Base::launch(host, lazy, hide);
  }

  /// Called when the actor ends.
  bool cleanup(caf::error&& reason, caf::execution_unit* host) override {
    trace_.terminates(reason);
    return Base::cleanup(std::move(reason), host);
  }

private:
  actors::message_trace trace_;
};

/// A traced actor that is made of a function:
///
///     system.spawn<troupe::traced_function>(
///       exe.shared_trace(), "reporter", [](caf::event_based_actor* self) {
///         return caf::behavior{...};
///       });
class traced_function final : public traced<caf::event_based_actor> {
public:
  /// Makes the actor's first behavior.
  using function = std::function<caf::behavior(caf::event_based_actor*)>;

  /// @param to `executor::shared_trace`; not null
  traced_function(caf::actor_config& cfg, std::shared_ptr<recorder> to,
                  std::string name, function makes)
    : traced(cfg, std::move(to)), name_(std::move(name)),
      makes_(std::move(makes)) {}

  /// The name that it was given.
  const char* name() const override { return name_.c_str(); }

protected:
  /// Called once, when the actor starts.
  caf::behavior make_behavior() override { return makes_(this); }

private:
  std::string name_;
  function makes_;
};

} // namespace troupe
