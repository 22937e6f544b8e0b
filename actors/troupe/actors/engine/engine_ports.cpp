// SPDX-License-Identifier: Apache-2.0
// Edges that send CAF messages.
#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/host.hpp>
#include <troupe/actors/messages.hpp>

#include <utility>

namespace troupe::actors {

void engine::connect(
  const std::function<caf::strong_actor_ptr(handle_id)>& address,
  caf::strong_actor_ptr sender) {
  sender_ = std::move(sender);
  for (auto& p : ports_)
    if (p.kind == port::form::message)
      p.address = address(p.to);
}

void engine::disconnect() noexcept {
  sender_ = nullptr;
  for (auto& p : ports_)
    p.address = nullptr;
}

void engine::send(const port& p, step_id step) {
  const auto number = static_cast<std::uint32_t>(&p - ports_.data());
  post_from(sender_, p.address, ready_atom_v, number, std::uint64_t{step});
}

} // namespace troupe::actors
