// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/kernels/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// The item that a channel carries in a step: the bytes of a value
/// (value_codec.hpp), or the reason why there is none.
struct transfer_content {
  std::string value;
  std::optional<error> failure;
};

/// Carries messages between the two ends of a channel, which can be in
/// different processes. Messages of one channel and direction arrive in the
/// order in which they are sent. Any thread; no call blocks.
class wire {
public:
  virtual ~wire() = default;
  /// Sends to the receiving end's `transport::arrived`.
  virtual void send(std::uint32_t channel, step_id step,
                    transfer_content content) = 0;
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
    virtual void received(transfer_content content) noexcept = 0;

  protected:
    ~receiver() = default;
  };

  transport(std::size_t channels, std::uint32_t steps_ahead);

  void connect(wire& over) { wire_ = &over; }
  std::size_t channels() const noexcept { return channels_.size(); }

  /// Sends a step's item. Returns `pending` if the receiver is too far behind;
  /// `sent` is then notified when the item has been sent. A failure is always
  /// sent at once.
  launch_status send(std::uint32_t channel, step_id step,
                     transfer_content content, completion& sent);
  /// Takes a step's item. Empty if it has not arrived yet; `to` is then
  /// notified when it arrives.
  std::optional<transfer_content> receive(std::uint32_t channel, step_id step,
                                          receiver& to);
  /// Discards a step's item, now or when it arrives.
  void drop(std::uint32_t channel, step_id step);

  /// Called when the step has failed here. Waiting receivers of the step are
  /// notified at once with an empty item. Waiting sends of the step are
  /// replaced by the failure.
  void give_up(step_id step, const error& reason);
  /// The same for one channel.
  void give_up(std::uint32_t channel, step_id step, const error& reason);

  /// Called by the wire. False if the item is not expected, because the other
  /// end violates the protocol.
  bool arrived(std::uint32_t channel, step_id step, transfer_content content);
  bool taken(std::uint32_t channel, step_id step);
  /// Called when the receiver is gone: sends to it no longer wait.
  void receiver_is_gone(std::uint32_t channel);

private:
  struct kept_content {
    step_id step;
    transfer_content content;
  };
  struct unsent_content {
    step_id step;
    transfer_content content;
    completion* sent;
  };
  struct channel_ends {
    std::mutex mutex; // guards all members; not held during callbacks
    // The receiving end.
    step_id next_to_come = 0;
    step_id next_to_take = 0; // next to be taken or discarded
    std::deque<kept_content> kept;
    receiver* waits = nullptr; // waits for `next_to_take`
    // The sending end.
    step_id next_to_send = 0;
    step_id next_to_hear_of = 0; // next acknowledgement
    step_id may_send_before = 0; // limit for values; failures have none
    std::optional<unsent_content> unsent;
  };

  void send_now(std::uint32_t channel, unsent_content content);

  std::deque<channel_ends> channels_;
  std::uint32_t steps_ahead_;
  wire* wire_ = nullptr;
};

/// Both ends in one process.
class loopback_wire final : public wire {
public:
  explicit loopback_wire(transport& ends) : ends_(ends) {}
  void send(std::uint32_t channel, step_id step,
            transfer_content content) override;
  void tell_taken(std::uint32_t channel, step_id step) override;

private:
  transport& ends_;
};

} // namespace troupe::actors
