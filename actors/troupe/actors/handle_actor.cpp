// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/handle_actor.hpp>

#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/messages.hpp>

namespace troupe::actors {

bool handle_actor::on_message(caf::mailbox_element& element, context ctx) {
  auto& content = element.content();
  if (content.match_elements<ready_atom, std::uint32_t, std::uint64_t>())
    return engine_.deliver(id_, content.get_as<std::uint32_t>(1),
                           content.get_as<std::uint64_t>(2), element.sender);
  if (!content.match_elements<describe_atom>())
    return false;
  answer_request(element, caf::make_message(describe_(id_)), ctx);
  return true;
}

bool handle_actor::obeys(const caf::exit_msg& exit) const {
  // CAF sets the source to the receiver if a message has no sender.
  return !graph_.members
         || (exit.source != address() && graph_.members->obeys(exit.source));
}

void handle_actor::on_exit(const caf::error& reason) {
  // Without this handle no step can be computed. Counting continues so that
  // steps end, and each step reports the reason.
  graph_.fail_for_good(
    error(errc::peer_failure,
          "the actor of a handle was told to exit: " + to_string(reason),
          {.op = name_}));
}

} // namespace troupe::actors
