// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/caf/inside.hpp>

#if CAF_MAJOR_VERSION == 1

#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>

#include <caf/actor_registry.hpp>
#include <caf/detail/meta_object.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/logger.hpp>

#include <charconv>

namespace troupe::actors {

namespace {

/// CAF's name of actors that do not have one of their own.
constexpr std::string_view no_name = "user.scheduled-actor";

} // namespace

bool from_string(std::string_view text, answer_code& code) {
  std::uint8_t number = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end
         && from_integer(number, code);
}

void reserve_type_ids() {
  static std::mutex one_at_a_time;
  std::lock_guard guard{one_at_a_time};
  if (caf::detail::global_meta_objects().size() >= type_ids::end)
    return;
  // Systems hold a reference to the table, and so do this function and CAF.
  constexpr std::size_t without_systems = 2;
  if (caf::detail::global_meta_objects_guard()->get_reference_count()
      > without_systems)
    throw error(errc::invalid_argument,
                "an actor system was made before troupe::init_message_types() "
                "was called");
  caf::detail::resize_global_meta_objects(type_ids::end);
}

void init_types_of_caf() {
  static std::once_flag once;
  std::call_once(once, [] {
    reserve_type_ids();
    caf::core::init_global_meta_objects();
    caf::io::middleman::init_global_meta_objects();
  });
  register_types<caf::id_block::troupe_answers>();
}

void forget_system() noexcept {
  caf::logger::current_logger(nullptr);
}

caf::strong_actor_ptr find_named(caf::actor_system& system,
                                 std::string_view name) {
  return system.registry().get(std::string(name));
}

void put_named(caf::actor_system& system, std::string_view name,
               const caf::strong_actor_ptr& actor) {
  system.registry().put(std::string(name), actor);
}

void forget_named(caf::actor_system& system, std::string_view name) {
  system.registry().erase(std::string(name));
}

std::uint64_t types_key(const message_content& content) {
  fingerprint key;
  for (auto type : content.types())
    key.add(&type, sizeof type);
  return key.value();
}

std::string types_text(const caf::actor_system&,
                       const message_content& content) {
  std::string text;
  for (auto type : content.types())
    text +=
      (text.empty() ? "" : ", ") + std::string(caf::query_type_name(type));
  return "(" + text + ")";
}

std::size_t mailbox_length(caf::scheduled_actor& self) {
  // Without those that were skipped. The next one is still there.
  const auto all = self.mailbox().size();
  return all > 0 ? all - 1 : 0;
}

std::string name_of_actor(const caf::abstract_actor& actor) {
  const std::string_view name = actor.name();
  return name == no_name ? type_name_of(typeid(actor)) : std::string{name};
}

std::string reason_text(const caf::actor_system&, const caf::error& reason) {
  if (!reason)
    return "normal";
  return reason.category() == caf::type_id_v<caf::exit_reason>
           ? to_string(static_cast<caf::exit_reason>(reason.code()))
           : to_string(reason);
}

caf::actor connection_broker(caf::actor_system& system) {
  return system.middleman().named_broker<caf::io::basp_broker>("BASP");
}

} // namespace troupe::actors

#endif
