// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/traced_actor.hpp>

#include <troupe/actors/caf/inside.hpp>

#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>

namespace troupe::actors {

namespace {

bool is_here(const caf::actor_control_block& actor) {
  return actor.nid == actor.home_system->node();
}

actor_key key_of(const caf::actor_control_block& actor) {
  const auto home = is_here(actor)
                      ? reinterpret_cast<std::uintptr_t>(actor.home_system)
                      : std::uint64_t{std::hash<caf::node_id>{}(actor.nid)};
  return {home, actor.aid};
}

recorded_actor sender_of(caf::actor_control_block& actor) {
  recorded_actor made{name_of_actor(*actor.get()), actor.aid};
  if (!is_here(actor))
    made.node = to_string(actor.nid);
  return made;
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
    types_key(content), [&] { return types_text(system, content); });
  return mail_id{number_of(message), type}.amount();
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

void message_trace::starts(const caf::scheduled_actor& self) {
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
  auto text = reason_text(system_, reason);
  if (!thrown_.empty())
    text += ": " + thrown_;
  to_->actors().end(number_, is_failure(reason), std::move(text));
} catch (...) {
}

} // namespace troupe::actors
