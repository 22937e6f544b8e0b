// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/group_wire.hpp>

#include <troupe/base/failure_codec.hpp>

#include <cstring>
#include <string_view>
#include <utility>

namespace troupe::actors {

group_wire::group_wire(
  const graph::ssa_graph& g, transport& ends, const collective_ranks& ranks,
  const std::vector<std::size_t>& own_devices, recorder& trace,
  std::function<void(std::size_t device, const std::string& why)> lost)
  : ends_(ends), ranks_(ranks), own_device_(own_devices.front()), trace_(trace),
    lost_(std::move(lost)), is_own_(g.devices.size()) {
  for (auto& t : g.transfers)
    channels_.push_back({t, g.op(t.send).device, g.op(t.recv).device});
  for (auto d : own_devices)
    is_own_[d] = true;
}

void group_wire::open() {
  ranks_.of(own_device_).open_parcels(*this);
}

group_wire::~group_wire() {
  ranks_.of(own_device_).close_parcels();
}

arena& group_wire::memory() {
  auto* shared = ranks_.of(own_device_).memory();
  return shared ? *shared : host_memory_;
}

void group_wire::record(event_kind kind, const channel_route& on, step_id step,
                        std::size_t bytes) noexcept {
  if (trace_.wants(level_of(kind)))
    trace_.record(kind, on.ops.send, step, bytes, on.ops.recv);
}

// -- sending ------------------------------------------------------------------

// A label is the kind and the channel, then the step.
void group_wire::post(std::size_t from, std::size_t to, item_kind kind,
                      std::uint32_t channel, step_id step,
                      encoded_value content) {
  const auto what = static_cast<std::uint64_t>(kind) << 32 | channel;
  const bool has_value = content.bytes > 0;
  try {
    ranks_.of(from).send_parcel(
      to, {{what, step}, std::move(content.memory), content.bytes});
  } catch (const error& e) {
    if (has_value)
      throw;
    lost_(to, "it could not be told anything: " + e.message());
  }
}

void group_wire::send(std::uint32_t channel, step_id step, outgoing_item item) {
  const auto& on = channels_[channel];
  // Recorded before it can arrive, so that no trace has it the other way round.
  if (!item.failure)
    try {
      record(event_kind::parcel_sent, on, step, item.value.bytes);
      return post(on.sender, on.receiver, item_kind::value, channel, step,
                  std::move(item.value));
    } catch (const error& e) {
      item.failure = e; // the receiver waits for an item in any case
    }
  auto why = encoded(*item.failure);
  record(event_kind::parcel_sent, on, step, why.bytes);
  post(on.sender, on.receiver, item_kind::failure, channel, step,
       std::move(why));
}

/// Without memory for its text, the receiver gets a general error.
encoded_value group_wire::encoded(const error& failure) {
  encoded_value made;
  try {
    const auto text = encode_failure(failure);
    made.memory = memory().allocate(text.size());
    made.bytes = text.size();
    std::memcpy(made.memory.data(), text.data(), text.size());
  } catch (const error&) {
    made = {};
  }
  return made;
}

void group_wire::tell_taken(std::uint32_t channel, step_id step) {
  const auto& on = channels_[channel];
  post(on.receiver, on.sender, item_kind::taken, channel, step, {});
}

// -- receiving ----------------------------------------------------------------

void group_wire::arrived(std::size_t from, const comm::parcel_label& label,
                         std::span<const std::byte> content) noexcept {
  const std::string_view text{reinterpret_cast<const char*>(content.data()),
                              content.size()};
  if (!accept(from, label, text))
    lost_(from, "it has sent a value that is not due");
}

void group_wire::malformed(std::size_t from, const error& why) noexcept {
  lost_(from, why.message());
}

bool group_wire::accept(std::size_t from, const comm::parcel_label& label,
                        std::string_view content) {
  const auto channel = static_cast<std::uint32_t>(label[0]);
  const step_id step = label[1];
  if (channel >= channels_.size())
    return false;
  const auto& on = channels_[channel];
  const auto kind = static_cast<item_kind>(label[0] >> 32);
  if (kind == item_kind::taken)
    return from == on.receiver && is_own_[on.sender] && content.empty()
           && ends_.taken(channel, step);
  if (from != on.sender || !is_own_[on.receiver])
    return false;
  switch (kind) {
  case item_kind::value:
    record(event_kind::parcel_arrived, on, step, content.size());
    return ends_.arrived(channel, step, content);
  case item_kind::failure:
    record(event_kind::parcel_arrived, on, step, content.size());
    return ends_.arrived(channel, step, decode_failure(content));
  default: return false;
  }
}

} // namespace troupe::actors
