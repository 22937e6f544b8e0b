// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/var_actor.hpp>

#include <troupe/actors/value_codec.hpp>

#include <utility>

namespace troupe::actors {

var_actor::var_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
                     std::string name, storage& value)
  : handle_actor(cfg, graph, id, std::move(name)), value_(value) {}

void var_actor::arrive(std::uint32_t, const readiness& r) { deliver(r); }

std::uint32_t var_actor::add_in_edge(stream_actor*, storage*, std::uint32_t) {
  return 0;
}

std::string var_actor::describe() const {
  return std::string{name()} + ": told by its generator, tells "
         + std::to_string(ports().size()) + " readers";
}

void var_actor::take_value(std::uint32_t, std::uint32_t slot,
                           const std::string& bytes) {
  decode_value(bytes, value_.memory(), value_.at(slot));
}

} // namespace troupe::actors
