// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/caf/inside.hpp>

#if CAF_MAJOR_VERSION == 0

#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>

#include <caf/actor_registry.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/logger.hpp>
#include <caf/type_nr.hpp>
#include <caf/uniform_type_info_map.hpp>

namespace troupe::actors {

namespace {

caf::atom_value key_of_name(std::string_view name) {
  constexpr std::size_t longest = 10;
  const auto key = caf::atom_from_string({name.data(), name.size()});
  if (name.size() > longest || to_string(key) != name)
    throw error(errc::invalid_argument,
                "an actor of CAF 0.17 cannot have the name \""
                  + std::string(name) + "\": at most 10 letters, figures and "
                  + "underscores");
  return key;
}

bool is_atom(const message_content& content, std::size_t at) {
  return content.type_nr(at) == caf::type_nr<caf::atom_value>::value;
}

/// "'feed'", "i32", "std::vector<float>".
std::string type_text(const caf::actor_system& system,
                      const message_content& content, std::size_t at) {
  if (is_atom(content, at))
    return "'" + to_string(content.get_as<caf::atom_value>(at)) + "'";
  const auto type = content.type(at);
  const auto& known = system.types();
  std::string name = known.portable_name(type);
  if (name == known.default_type_name() && type.second)
    return type_name_of(*type.second);
  return name.substr(name.starts_with('@') ? 1 : 0); // "@i32": built in
}

/// CAF's name of actors that do not have one of their own.
constexpr std::string_view no_name = "scheduled_actor";

} // namespace

void init_types_of_caf() {}

void forget_system() noexcept {
  caf::logger::set_current_actor_system(nullptr);
}

caf::strong_actor_ptr find_named(caf::actor_system& system,
                                 std::string_view name) {
  return system.registry().get(key_of_name(name));
}

void put_named(caf::actor_system& system, std::string_view name,
               const caf::strong_actor_ptr& actor) {
  system.registry().put(key_of_name(name), actor);
}

void forget_named(caf::actor_system& system, std::string_view name) {
  system.registry().erase(key_of_name(name));
}

std::uint64_t types_key(const message_content& content) {
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

std::string types_text(const caf::actor_system& system,
                       const message_content& content) {
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i)
    text += (i > 0 ? ", " : "") + type_text(system, content, i);
  return "(" + text + ")";
}

/// Takes new messages out of the inbox, as the actor itself does before it
/// handles the next one. If the inbox is blocked, because a broker handles what
/// is not from its mailbox, it must stay so: it would wake nobody any more.
std::size_t mailbox_length(caf::scheduled_actor& self) {
  auto& all = self.mailbox();
  const auto fetched =
    all.blocked() || all.closed() ? all.queue().total_task_size() : all.size();
  return fetched + self.get_normal_queue().cache().total_task_size()
         + self.get_urgent_queue().cache().total_task_size();
}

std::string name_of_actor(const caf::abstract_actor& actor) {
  const auto* named = dynamic_cast<const caf::monitorable_actor*>(&actor);
  const std::string_view name = named ? named->name() : no_name;
  return name == no_name ? type_name_of(typeid(actor)) : std::string{name};
}

std::string reason_text(const caf::actor_system& system,
                        const caf::error& reason) {
  if (!reason)
    return "normal";
  return reason.category() == caf::atom("exit")
           ? to_string(static_cast<caf::exit_reason>(reason.code()))
           : system.render(reason);
}

caf::actor connection_broker(caf::actor_system& system) {
  return system.middleman().named_broker<caf::io::basp_broker>(
    caf::atom("BASP"));
}

} // namespace troupe::actors

#endif
