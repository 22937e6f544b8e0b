// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/var_actor.hpp>

#include <troupe/actors/value_codec.hpp>

#include <utility>

namespace troupe::actors {

var_actor::var_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
                     std::string name, storage& value, std::size_t readers)
  : wired_actor(cfg, graph, id, std::move(name)), value_(value),
    readers_(readers) {}

void var_actor::arrive(std::uint32_t, const readiness& r) {
  deliver(r);
}

std::uint32_t var_actor::add_in_edge(stream_actor*, storage*, std::uint32_t) {
  return 0;
}

std::string var_actor::describe() const {
  return std::string{name()} + ": told by its generator, tells "
         + std::to_string(readers_) + " readers";
}

void var_actor::mark_remote(std::uint32_t) {
  claimed_ = std::make_unique<std::atomic<bool>[]>(graph().slots());
}

bool var_actor::claim(std::uint32_t, std::uint32_t slot) {
  if (!claimed_)
    return true;
  if (claimed_[slot].exchange(true, std::memory_order_acq_rel))
    return false;
  // The one generator tells in the order of steps, so the slot behind this one
  // was last that of a step long ended.
  claimed_[graph().slot_after(slot, 1)].store(false, std::memory_order_relaxed);
  return true;
}

void var_actor::take_value(std::uint32_t, std::uint32_t slot,
                           const std::string& bytes) {
  decode_value(bytes, value_.memory(), value_.at(slot));
}

} // namespace troupe::actors
