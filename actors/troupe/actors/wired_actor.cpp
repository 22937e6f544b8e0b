// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/wired_actor.hpp>

#include <troupe/actors/value_codec.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/random.hpp>

#include <algorithm>
#include <utility>

namespace troupe::actors {

void wired_actor::add_port(port p) {
  ports_.push_back(std::move(p));
}

void wired_actor::connect(handle_id to, const caf::strong_actor_ptr& address) {
  for (auto& p : ports_)
    if (p.kind == port::form::remote && p.to == to)
      p.address = address;
}

namespace {

bool concerns(const port& p, const readiness& r) noexcept {
  return r.what == phase::both || p.needs == phase::both || r.what == p.needs;
}

} // namespace

void wired_actor::deliver(const readiness& r) {
  if (graph().shuffle_seed != 0) {
    deliver_shuffled(r);
    return;
  }
  for (const auto& p : ports_)
    if (concerns(p, r))
      send(p, r);
}

void wired_actor::deliver_shuffled(const readiness& r) {
  std::vector<const port*> order;
  for (const auto& p : ports_)
    if (concerns(p, r))
      order.push_back(&p);
  splitmix64 draw{graph().shuffle_seed ^ (std::uint64_t{handle()} << 32)
                  ^ graph().steps[r.slot]->id};
  std::shuffle(order.begin(), order.end(), draw);
  for (const auto* p : order)
    send(*p, r);
}

void wired_actor::send(const port& p, const readiness& r) {
  auto out = r;
  out.slot = graph().slot_after(r.slot, p.distance);
  // A failure concerns its own step. Along an edge to a later one this may be
  // said after the step has ended, of a step that was admitted since; those
  // that were admitted before fail by `step_failed`.
  out.failed = r.failed && p.distance == 0;
  if (graph().trace)
    trace(trace_kind::message, p.to, r.slot);
  switch (p.kind) {
  case port::form::counter: p.receiver->arrive(p.in_edge, out); break;
  case port::form::message:
    post(p.address, ready_atom::value, p.in_edge, out.slot,
         static_cast<std::uint8_t>(out.what), out.position, out.failed,
         std::string{});
    break;
  case port::form::remote:
    post_from(graph().members->self(), p.address, ready_atom::value, p.in_edge,
              out.slot, static_cast<std::uint8_t>(phase::both), ticket{0},
              out.failed,
              p.value ? encode_value(p.value->at(r.slot)) : std::string{});
    break;
  }
}

void wired_actor::trace(trace_kind kind, handle_id to,
                        std::uint32_t slot) const {
  graph().trace->record(
    {kind, handle(), to, graph().steps[slot]->id, now_ns()});
}

bool wired_actor::may_come(std::uint32_t in_edge,
                           const caf::strong_actor_ptr& from) const {
  const auto& members = graph().members;
  if (!members)
    return true;
  return is_remote(in_edge) ? members->has(from) : graph().messages_within;
}

bool wired_actor::on_message(caf::mailbox_element& element, context ctx) {
  auto& content = element.content();
  if (content.match_elements<ready_atom, std::uint32_t, std::uint32_t,
                             std::uint8_t, ticket, bool, std::string>()) {
    const auto in_edge = content.get_as<std::uint32_t>(1);
    readiness r;
    r.slot = content.get_as<std::uint32_t>(2);
    r.what = static_cast<phase>(content.get_as<std::uint8_t>(3));
    if (!has_in_edge(in_edge) || r.slot >= graph().slots()
        || r.what > phase::both || !may_come(in_edge, element.sender))
      return false;
    r.position = content.get_as<ticket>(4);
    r.failed = content.get_as<bool>(5);
    if (!claim(in_edge, r.slot))
      return true;
    try {
      const auto& bytes = content.get_as<std::string>(6);
      if (!bytes.empty())
        take_value(in_edge, r.slot, bytes);
    } catch (const error& e) {
      graph().steps[r.slot]->fail(e);
    }
    arrive(in_edge, r);
    return true;
  }
  return handle_actor::on_message(element, ctx);
}

void wired_actor::make_up(std::uint32_t in_edge, std::uint32_t slot) {
  if (claim(in_edge, slot))
    arrive(in_edge, {slot, phase::both, true, 0});
}

void wired_actor::forget() {
  // In message form ports hold their receivers, in a circle.
  ports_.clear();
}

} // namespace troupe::actors
