// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/group_wire.hpp>

#include <troupe/base/failure_codec.hpp>

#include <cstring>
#include <string_view>
#include <utility>

namespace troupe::actors {

group_wire::group_wire(
  const graph::ssa_graph& g, transport& ends, const collective_ranks& ranks,
  const std::vector<std::size_t>& own_devices,
  std::function<void(std::size_t device, const std::string& why)> lost)
  : ends_(ends), ranks_(ranks), own_device_(own_devices.front()),
    lost_(std::move(lost)), is_own_(g.devices.size()) {
  for (auto& t : g.transfers)
    channels_.push_back({g.op(t.send).device, g.op(t.recv).device});
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
  const auto [sender, receiver] = channels_[channel];
  if (!item.failure)
    try {
      return post(sender, receiver, item_kind::value, channel, step,
                  std::move(item.value));
    } catch (const error& e) {
      item.failure = e; // the receiver waits for an item in any case
    }
  post(sender, receiver, item_kind::failure, channel, step,
       encoded(*item.failure));
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
  const auto [sender, receiver] = channels_[channel];
  post(receiver, sender, item_kind::taken, channel, step, {});
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
  const auto [sender, receiver] = channels_[channel];
  const bool is_sender = from == sender && is_own_[receiver];
  switch (static_cast<item_kind>(label[0] >> 32)) {
  case item_kind::value:
    return is_sender && ends_.arrived(channel, step, content);
  case item_kind::failure:
    return is_sender && ends_.arrived(channel, step, decode_failure(content));
  case item_kind::taken:
    return from == receiver && is_own_[sender] && content.empty()
           && ends_.taken(channel, step);
  }
  return false;
}

} // namespace troupe::actors
