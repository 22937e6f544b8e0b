// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/value_codec.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/stream.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// What a channel carries in a step: a value, or the reason why there is none.
/// It is encoded when it is sent and decoded when it arrives.
struct outgoing_item {
  encoded_value value;
  std::optional<error> failure;
};
struct incoming_item {
  variable value;
  std::optional<error> failure;
};

/// Carries items between the two ends of a channel, which can be in different
/// processes. Items of one channel and direction arrive in the order in which
/// they are sent. Any thread; no call blocks.
class wire {
public:
  virtual ~wire() = default;
  /// Memory from which values need not be copied once more to be sent.
  virtual arena& memory() = 0;
  /// Sends to the receiving end's `transport::arrived`.
  virtual void send(std::uint32_t channel, step_id step,
                    outgoing_item item) = 0;
  /// Sends to the sending end's `transport::taken`.
  virtual void tell_taken(std::uint32_t channel, step_id step) = 0;
};

/// The ends of a graph's transfers that are in this process. Passes values from
/// sending ops to a wire, and values from the wire to receiving ops.
///
/// A channel carries one item per step, in the order of steps. Items that
/// arrive before the receiving op of their step are buffered. A sender is at
/// most `steps_ahead` steps ahead of the receiver, which bounds the buffer.
/// Failures are sent without waiting, so that a failed step ends no matter how
/// far the other process is.
///
/// Thread rule: `connect` before the first step; all others from any thread,
/// with at most one `send` and one `receive` per channel at a time.
class transport {
public:
  /// Gets the item that it waits for.
  class receiver {
  public:
    virtual void received(incoming_item item) noexcept = 0;

  protected:
    ~receiver() = default;
  };

  /// @param find layouts that values may keep on their way
  transport(std::size_t channels, std::uint32_t steps_ahead,
            layout_finder find = {});

  void connect(wire& over) { wire_ = &over; }
  std::size_t channels() const noexcept { return channels_.size(); }
  /// Says where values that arrive on a channel go, before the first step.
  void receive_into(std::uint32_t channel, arena& memory) {
    channels_[channel].memory = &memory;
  }
  /// Makes an item of a value. Throws what `encode_value` throws.
  outgoing_item encoded(const variable& value) const {
    return {encode_value(value, wire_->memory(), find_), {}};
  }

  /// Sends a step's item. Returns `pending` if the receiver is too far behind;
  /// `sent` is then notified when the item has been sent. A failure is always
  /// sent at once.
  launch_status send(std::uint32_t channel, step_id step, outgoing_item item,
                     completion& sent);
  /// Takes a step's item. Empty if it has not arrived yet; `to` is then
  /// notified when it arrives.
  std::optional<incoming_item> receive(std::uint32_t channel, step_id step,
                                       receiver& to);
  /// Discards a step's item, now or when it arrives.
  void drop(std::uint32_t channel, step_id step);

  /// Called when the step has failed here. Waiting receivers of the step are
  /// notified at once with an empty item. Waiting sends of the step are
  /// replaced by the failure.
  void give_up(step_id step, const error& reason);
  /// The same for one channel.
  void give_up(std::uint32_t channel, step_id step, const error& reason);

  /// Called by the wire. False if the item is not expected, or the value is
  /// malformed, because the other end violates the protocol.
  bool arrived(std::uint32_t channel, step_id step, std::string_view value);
  bool arrived(std::uint32_t channel, step_id step, error failure);
  bool taken(std::uint32_t channel, step_id step);
  /// Called when the receiver is gone: sends to it no longer wait.
  void receiver_is_gone(std::uint32_t channel);

private:
  struct kept_item {
    step_id step;
    incoming_item item;
  };
  struct unsent_item {
    step_id step;
    outgoing_item item;
    completion* sent;
  };
  struct channel_ends {
    std::mutex mutex; // guards all members; not held during callbacks
    // The receiving end.
    arena* memory = nullptr; // constant
    step_id next_to_come = 0;
    step_id next_to_take = 0; // next to be taken or discarded
    std::deque<kept_item> kept;
    receiver* waits = nullptr; // waits for `next_to_take`
    // The sending end.
    step_id next_to_send = 0;
    step_id next_to_hear_of = 0; // next acknowledgement
    step_id may_send_before = 0; // limit for values; failures have none
    std::optional<unsent_item> unsent;
  };

  void send_now(std::uint32_t channel, unsent_item unsent);
  bool take(std::uint32_t channel, step_id step, incoming_item item);

  std::deque<channel_ends> channels_;
  std::uint32_t steps_ahead_;
  layout_finder find_;
  wire* wire_ = nullptr;
};

/// Both ends in one process.
class loopback_wire final : public wire {
public:
  explicit loopback_wire(transport& ends) : ends_(ends) {}
  arena& memory() override { return memory_; }
  void send(std::uint32_t channel, step_id step, outgoing_item item) override;
  void tell_taken(std::uint32_t channel, step_id step) override;

private:
  transport& ends_;
  arena memory_{make_host_memory_source()};
};

} // namespace troupe::actors
