// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/node_actor.hpp>

#include <troupe/actors/remote/node_messages.hpp>
#include <troupe/actors/remote/node_state.hpp>

#include <optional>
#include <string>

namespace troupe::actors {

bool node_actor::on_message(caf::mailbox_element& element, context) {
  using std::uint64_t;
  auto& m = element.content();
  auto& link = *link_;
  if (m.match_elements<join_atom, uint64_t, std::string>()) {
    link.on_join(link_, m.get_as<uint64_t>(1), m.get_as<std::string>(2),
                 element.sender);
    return true;
  }
  std::optional<uint64_t> from;
  {
    std::lock_guard guard{link.mutex};
    from = link.process_of(element.sender);
  }
  return from && (on_step(m, *from) || on_control(m, *from));
}

bool node_actor::on_step(message_content& m, std::uint64_t from) {
  using std::uint64_t;
  if (m.match_elements<failed_atom, uint64_t, std::string>())
    link_->on_failed(m.get_as<uint64_t>(1), m.get_as<std::string>(2));
  else if (m.match_elements<publish_atom, std::string, std::string>())
    link_->on_published(from, m.get_as<std::string>(1),
                        m.get_as<std::string>(2));
  else if (m.match_elements<note_atom, std::string>())
    link_->on_note(from, m.get_as<std::string>(1));
  else
    return false;
  return true;
}

bool node_actor::on_control(message_content& m, std::uint64_t from) {
  using std::uint64_t;
  if (!link_->is_first() && from != 0)
    return false;
  if (m.match_elements<leave_atom, uint64_t>())
    link_->on_leave(from, m.get_as<uint64_t>(1));
  else if (m.match_elements<left_atom>())
    link_->on_left(from);
  else if (link_->is_first()) {
    if (!m.match_elements<here_atom>())
      return false;
    link_->on_here(from);
  } else if (m.match_elements<lost_atom, uint64_t, std::string>())
    link_->lose(m.get_as<uint64_t>(1), m.get_as<std::string>(2));
  else if (m.match_elements<differs_atom, std::string>())
    link_->lose(0, m.get_as<std::string>(1), errc::invalid_argument);
  else if (m.match_elements<welcome_atom, actor_list>())
    link_->on_welcome(m.get_as<actor_list>(1));
  else if (m.match_elements<begin_atom>())
    link_->on_begin();
  else
    return false;
  return true;
}

} // namespace troupe::actors
