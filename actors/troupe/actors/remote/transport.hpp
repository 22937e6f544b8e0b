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

/// What a channel carries in a step: the bytes of a value (value_codec.hpp), or
/// why there is none.
struct transfer_content {
  std::string value;
  std::optional<error> failure;
};

/// Carries messages from one end of a channel to the other, which may be in
/// another process. Those of a channel and direction arrive in the order in
/// which they are sent. Any thread; none of these calls waits.
class wire {
public:
  virtual ~wire() = default;
  /// To the receiving end's `transport::arrived`.
  virtual void send(std::uint32_t channel, step_id step,
                    transfer_content content) = 0;
  /// To the sending end's `transport::taken`.
  virtual void tell_taken(std::uint32_t channel, step_id step) = 0;
};

/// The ends of a graph's transfers that are in this process: hands what ops
/// send to a wire, and what comes along it to the ops that receive.
///
/// A channel carries one content per step, in the order of steps. What comes
/// before its step's receiver is kept; a sender is at most `steps_ahead` steps
/// ahead of what the receiver has taken, so no more than that is kept. Marks of
/// failures wait for nobody: a step that has failed ends, wherever the other
/// process is.
///
/// Thread rule: `connect` before the first step; all else from any thread, at
/// most one `send` and one `receive` per channel at a time.
class transport {
public:
  /// Hears of the content that it waits for.
  class receiver {
  public:
    virtual void received(transfer_content content) noexcept = 0;

  protected:
    ~receiver() = default;
  };

  /// @param first_step the number of the first step
  transport(std::size_t channels, std::uint32_t steps_ahead,
            step_id first_step = 0);

  void connect(wire& over) { wire_ = &over; }
  std::size_t channels() const noexcept { return channels_.size(); }

  /// Sends a step's content. `pending`: the receiver is too far behind; `sent`
  /// hears when it has been sent. A failure is always sent at once.
  launch_status send(std::uint32_t channel, step_id step,
                     transfer_content content, completion& sent);
  /// Takes a step's content; none: it has not come yet, and `to` will hear.
  std::optional<transfer_content> receive(std::uint32_t channel, step_id step,
                                          receiver& to);
  /// Takes a step's content, whenever it comes, and forgets it.
  void drop(std::uint32_t channel, step_id step);

  /// The step has failed here: who waits to receive in it hears at once, with
  /// an empty content; what waits to be sent in it becomes the mark of a
  /// failure.
  void give_up(step_id step, const error& reason);
  /// The same of one channel.
  void give_up(std::uint32_t channel, step_id step, const error& reason);

  /// From the wire. False if it is not due: the other end does not keep to the
  /// rules.
  bool arrived(std::uint32_t channel, step_id step, transfer_content content);
  bool taken(std::uint32_t channel, step_id step);
  /// The receiver is gone: what is sent to it waits no more.
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
    std::mutex mutex; // guards all; held while nobody else is called
    // The receiving end.
    step_id next_to_come = 0;
    step_id next_to_take = 0; // or to drop
    std::deque<kept_content> kept;
    receiver* waits = nullptr; // for `next_to_take`
    // The sending end.
    step_id next_to_send = 0;
    step_id next_to_hear_of = 0; // that it was taken
    step_id may_send_before = 0; // values
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
