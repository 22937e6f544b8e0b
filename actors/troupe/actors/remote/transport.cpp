// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/transport.hpp>

#include <troupe/base/assert.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe::actors {

namespace {

/// Maximum number of failures that a receiver buffers. Failures are sent
/// without credit, but a peer that is this far ahead does not run the same
/// steps.
constexpr std::size_t most_kept = 4096;

} // namespace

transport::transport(std::size_t channels, std::uint32_t steps_ahead,
                     layout_finder find)
  : channels_(channels), steps_ahead_(steps_ahead), find_(std::move(find)) {
  for (auto& c : channels_)
    c.may_send_before = steps_ahead;
}

// -- the sending end ----------------------------------------------------------

void transport::send_now(std::uint32_t channel, unsent_item unsent) {
  wire_->send(channel, unsent.step, std::move(unsent.item));
  if (unsent.sent)
    unsent.sent->completed(nullptr);
}

launch_status transport::send(std::uint32_t channel, step_id step,
                              outgoing_item item, completion& sent) {
  auto& c = channels_[channel];
  {
    std::lock_guard guard{c.mutex};
    TROUPE_ASSERT(!c.unsent && step == c.next_to_send);
    ++c.next_to_send;
    if (!item.failure && step >= c.may_send_before) {
      c.unsent.emplace(step, std::move(item), &sent);
      return launch_status::pending;
    }
  }
  send_now(channel, {step, std::move(item), nullptr});
  return launch_status::done;
}

bool transport::taken(std::uint32_t channel, step_id step) {
  if (channel >= channels_.size())
    return false;
  auto& c = channels_[channel];
  std::optional<unsent_item> now;
  {
    std::lock_guard guard{c.mutex};
    if (step != c.next_to_hear_of || step >= c.next_to_send)
      return false;
    ++c.next_to_hear_of;
    c.may_send_before =
      std::max(c.may_send_before, c.next_to_hear_of + steps_ahead_);
    if (c.unsent && c.unsent->step < c.may_send_before)
      now = std::exchange(c.unsent, std::nullopt);
  }
  if (now)
    send_now(channel, *std::move(now));
  return true;
}

void transport::receiver_is_gone(std::uint32_t channel) {
  auto& c = channels_[channel];
  std::optional<unsent_item> now;
  {
    std::lock_guard guard{c.mutex};
    c.may_send_before = std::numeric_limits<step_id>::max();
    now = std::exchange(c.unsent, std::nullopt);
  }
  if (now)
    send_now(channel, *std::move(now));
}

// -- the receiving end --------------------------------------------------------

std::optional<incoming_item> transport::receive(std::uint32_t channel,
                                                step_id step, receiver& to) {
  auto& c = channels_[channel];
  std::optional<incoming_item> item;
  {
    std::lock_guard guard{c.mutex};
    TROUPE_ASSERT(!c.waits && step == c.next_to_take);
    if (c.kept.empty()) {
      c.waits = &to;
      return std::nullopt;
    }
    item = std::move(c.kept.front().item);
    c.kept.pop_front();
    ++c.next_to_take;
  }
  wire_->tell_taken(channel, step);
  return item;
}

void transport::drop(std::uint32_t channel, step_id step) {
  auto& c = channels_[channel];
  {
    std::lock_guard guard{c.mutex};
    TROUPE_ASSERT(!c.waits && step == c.next_to_take);
    ++c.next_to_take;
    if (c.kept.empty())
      return; // dropped when it arrives
    c.kept.pop_front();
  }
  wire_->tell_taken(channel, step);
}

bool transport::arrived(std::uint32_t channel, step_id step,
                        std::string_view value) {
  if (channel >= channels_.size() || !channels_[channel].memory)
    return false;
  incoming_item item;
  try {
    decode_value(value, *channels_[channel].memory, item.value, find_);
  } catch (const error& e) {
    if (e.code() == errc::peer_failure)
      return false;
    item.failure = e; // out of memory
  }
  return take(channel, step, std::move(item));
}

bool transport::arrived(std::uint32_t channel, step_id step, error failure) {
  return channel < channels_.size()
         && take(channel, step, {{}, std::move(failure)});
}

bool transport::take(std::uint32_t channel, step_id step, incoming_item item) {
  auto& c = channels_[channel];
  receiver* to = nullptr;
  {
    std::lock_guard guard{c.mutex};
    if (step != c.next_to_come || c.kept.size() >= most_kept
        || (!item.failure && step >= c.next_to_take + steps_ahead_))
      return false;
    ++c.next_to_come;
    if (step > c.next_to_take || (step == c.next_to_take && !c.waits)) {
      c.kept.push_back({step, std::move(item)});
      return true;
    }
    if (step == c.next_to_take) {
      to = std::exchange(c.waits, nullptr);
      ++c.next_to_take;
    }
  }
  // Acknowledged before the receiver gets the item, because that can end the
  // run.
  wire_->tell_taken(channel, step);
  if (to)
    to->received(std::move(item));
  return true;
}

// -- failures -----------------------------------------------------------------

void transport::give_up(std::uint32_t channel, step_id step,
                        const error& reason) {
  auto& c = channels_[channel];
  receiver* to = nullptr;
  std::optional<unsent_item> now;
  {
    std::lock_guard guard{c.mutex};
    if (c.waits && c.next_to_take == step) {
      to = std::exchange(c.waits, nullptr);
      ++c.next_to_take;
    }
    if (c.unsent && c.unsent->step == step)
      now = std::exchange(c.unsent, std::nullopt);
  }
  if (to)
    to->received({});
  if (now) {
    now->item = {{}, reason};
    send_now(channel, *std::move(now));
  }
}

void transport::give_up(step_id step, const error& reason) {
  for (std::uint32_t channel = 0; channel < channels_.size(); ++channel)
    give_up(channel, step, reason);
}

// -- loopback -----------------------------------------------------------------

void loopback_wire::send(std::uint32_t channel, step_id step,
                         outgoing_item item) {
  const auto due = item.failure
                     ? ends_.arrived(channel, step, *std::move(item.failure))
                     : ends_.arrived(channel, step, item.value.text());
  TROUPE_ASSERT(due);
}

void loopback_wire::tell_taken(std::uint32_t channel, step_id step) {
  const auto due = ends_.taken(channel, step);
  TROUPE_ASSERT(due);
}

} // namespace troupe::actors
