// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/traced_actor.hpp>

#include <troupe/base/fingerprint.hpp>

#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/exit_reason.hpp>
#include <caf/node_id.hpp>
#include <caf/type_nr.hpp>
#include <caf/uniform_type_info_map.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string_view>
#include <typeinfo>

namespace troupe::actors {

namespace {

std::string demangled(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name{
    abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free};
  return status == 0 ? name.get() : type.name();
}

bool is_here(const caf::actor_control_block& actor) {
  return actor.nid == actor.home_system->node();
}

actor_key key_of(const caf::actor_control_block& actor) {
  const auto home = is_here(actor)
                      ? reinterpret_cast<std::uintptr_t>(actor.home_system)
                      : std::uint64_t{std::hash<caf::node_id>{}(actor.nid)};
  return {home, actor.aid};
}

/// CAF's name of actors that do not have one of their own.
constexpr std::string_view no_name = "scheduled_actor";

std::string name_of_actor(const caf::abstract_actor& actor) {
  const auto* named = dynamic_cast<const caf::monitorable_actor*>(&actor);
  const std::string_view name = named ? named->name() : no_name;
  return name == no_name ? demangled(typeid(actor)) : std::string{name};
}

recorded_actor sender_of(caf::actor_control_block& actor) {
  recorded_actor made{name_of_actor(*actor.get()), actor.aid};
  if (!is_here(actor))
    made.node = to_string(actor.nid);
  return made;
}

bool is_atom(const caf::type_erased_tuple& content, std::size_t at) {
  return content.type_nr(at) == caf::type_nr<caf::atom_value>::value;
}

/// Atoms say what a message is about, so each one makes a type of its own.
std::uint64_t key_of_types(const caf::type_erased_tuple& content) {
  fingerprint key;
  const auto add = [&key](std::uint64_t word) { key.add(&word, sizeof word); };
  add(content.size());
  for (std::size_t i = 0; i < content.size(); ++i) {
    const auto type = content.type(i);
    add(type.first != 0 ? type.first
                        : reinterpret_cast<std::uintptr_t>(type.second));
    if (is_atom(content, i))
      add(static_cast<std::uint64_t>(content.get_as<caf::atom_value>(i)));
  }
  return key.value();
}

/// "'feed'", "i32", "std::vector<float>".
std::string type_text(const caf::actor_system& system,
                      const caf::type_erased_tuple& content, std::size_t at) {
  if (is_atom(content, at))
    return "'" + to_string(content.get_as<caf::atom_value>(at)) + "'";
  const auto type = content.type(at);
  const auto& known = system.types();
  std::string name = known.portable_name(type);
  if (name == known.default_type_name() && type.second)
    return demangled(*type.second);
  return name.substr(name.starts_with('@') ? 1 : 0); // "@i32": built in
}

std::string types_text(const caf::actor_system& system,
                       const caf::type_erased_tuple& content) {
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i)
    text += (i > 0 ? ", " : "") + type_text(system, content, i);
  return "(" + text + ")";
}

/// Its address tells a message from all others that exist. Events have no room
/// for more than what differs within 64 GiB of memory.
std::uint32_t number_of(const caf::mailbox_element& message) noexcept {
  constexpr unsigned alignment_bits = 4;
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&message)
                                    >> alignment_bits);
}

std::uint64_t id_of(recorder& to, const caf::actor_system& system,
                    const caf::mailbox_element& message) {
  const auto& content = message.content();
  const auto type = to.actors().type_of(
    key_of_types(content), [&] { return types_text(system, content); });
  return mail_id{number_of(message), type}.amount();
}

/// How many messages wait, also those that were skipped. Takes new ones out of
/// the inbox, as the actor itself does before it handles the next one. If the
/// inbox is blocked, because a broker handles what is not from its mailbox, it
/// must stay so: it would wake nobody any more.
std::size_t mailbox_length(caf::scheduled_actor& self) {
  auto& all = self.mailbox();
  const auto fetched =
    all.blocked() || all.closed() ? all.queue().total_task_size() : all.size();
  return fetched + self.get_normal_queue().cache().total_task_size()
         + self.get_urgent_queue().cache().total_task_size();
}

/// Reasons of actors that somebody has told to end, or that nobody needs.
bool is_failure(const caf::error& reason) {
  using caf::exit_reason;
  constexpr std::array usual{exit_reason::user_shutdown, exit_reason::kill,
                             exit_reason::unreachable};
  return reason && std::ranges::none_of(usual, [&](exit_reason each) {
           return reason == each;
         });
}

handling_result result_of(caf::invoke_message_result result) {
  switch (result) {
  case caf::invoke_message_result::consumed: return handling_result::handled;
  case caf::invoke_message_result::skipped: return handling_result::skipped;
  case caf::invoke_message_result::dropped: return handling_result::dropped;
  }
  return handling_result::handled;
}

/// "user_shutdown", "runtime_error(\"text\")".
std::string reason_text_of(const caf::actor_system& system,
                           const caf::error& reason) {
  if (!reason)
    return "normal";
  return reason.category() == caf::atom("exit")
           ? to_string(static_cast<caf::exit_reason>(reason.code()))
           : system.render(reason);
}

/// Of the exception that is being caught.
std::string text_of_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

} // namespace

message_trace::message_trace(std::shared_ptr<recorder> to,
                             const caf::scheduled_actor& self)
  : to_(std::move(to)), system_(self.home_system()),
    number_(to_->actors().add(
      key_of(*self.ctrl()),
      {.name = "actor", .id = self.id(), .is_recorded = true})) {}

void message_trace::set_name(const caf::scheduled_actor& self) {
  to_->actors().rename(number_, name_of_actor(self));
}

// What is recorded must not end a run: without memory for a name, an event is
// missing.

void message_trace::arrives(const caf::mailbox_element& message) noexcept try {
  if (number_ == no_actor)
    return;
  auto from = no_actor;
  if (auto* sender = message.sender.get())
    from = to_->actors().find_or_add(key_of(*sender),
                                     [&] { return sender_of(*sender); });
  to_->record(event_kind::mail, from, 0, id_of(*to_, system_, message),
              number_);
} catch (...) {
}

void message_trace::begins(caf::scheduled_actor& self,
                           const caf::mailbox_element& message) noexcept try {
  if (number_ == no_actor)
    return;
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  to_->record(event_kind::handling_begin, number_,
              std::min(mailbox_length(self), most),
              id_of(*to_, system_, message));
} catch (...) {
}

void message_trace::ends(caf::invoke_message_result result) noexcept {
  if (number_ != no_actor)
    to_->record(event_kind::handling_end, number_,
                static_cast<step_id>(result_of(result)));
}

void message_trace::throws(bool has_begun) noexcept {
  if (has_begun && number_ != no_actor)
    to_->record(event_kind::handling_end, number_,
                static_cast<step_id>(handling_result::failed));
  try {
    thrown_ = text_of_exception();
  } catch (...) {
  }
}

void message_trace::terminates(const caf::error& reason) noexcept try {
  auto text = reason_text_of(system_, reason);
  if (!thrown_.empty())
    text += ": " + thrown_;
  to_->actors().end(number_, is_failure(reason), std::move(text));
} catch (...) {
}

} // namespace troupe::actors
