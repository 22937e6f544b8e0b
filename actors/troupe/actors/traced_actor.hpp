// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the messages of an application's own CAF actors beside what the ops
// of an executor do: in its trace, and on its dashboard. docs/trace.md has an
// example.

#include <troupe/actors/caf/caf.hpp>
#include <troupe/base/recorder.hpp>

#include <caf/actor_system.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduled_actor.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

namespace actors {

/// Records what happens to one actor: the hooks of `hooked_actor`.
class message_trace {
public:
  /// Gives the actor a number. It has no name before `starts`.
  message_trace(std::shared_ptr<recorder> to, const caf::scheduled_actor& self);

  /// One relaxed load.
  bool is_on() const noexcept { return to_->wants(trace_level::messages); }

  /// Takes over `caf::local_actor::name`, or the name of the class if it has
  /// not been overridden.
  void starts(const caf::scheduled_actor& self);
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
/// Derived classes that override `enqueue` or `launch` call those of this
/// class; in CAF 0.17 also `consume` and `cleanup`, in 1.x `resume` and
/// `on_cleanup`. CAF 1.x lets less be seen (docs/caf.md).
template <class Base>
class traced : public actors::hooked_actor<Base, actors::message_trace> {
public:
  /// @param to `executor::shared_trace`; not null
  /// @param args passed to the constructor of `Base`
  template <class... Ts>
  traced(caf::actor_config& cfg, std::shared_ptr<recorder> to, Ts&&... args)
    : actors::hooked_actor<Base, actors::message_trace>(
      cfg, std::move(to), std::forward<Ts>(args)...) {}
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
