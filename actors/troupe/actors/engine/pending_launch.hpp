// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/mailbox.hpp>
#include <troupe/actors/engine/ready_op.hpp>
#include <troupe/kernels/stream.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace troupe::actors {

class engine;
class pending_op;
class stream_actor;
struct step_state;

/// One step's run of an op whose launch can be pending: the work that the
/// stream runs, and its completion. It is separate from the mailbox because the
/// op may be ready for its next step before this run is complete.
///
/// A completion can come from any thread. It is passed to the op's stream,
/// whose drain then sends the messages. All messages of a stream's ops
/// therefore come from its drains, and no message is in flight when the stream
/// is idle.
class pending_launch final : public work, private ready_op {
public:
  void execute(stream& on) override;
  void completed(std::exception_ptr failure) noexcept override;

  engine* of = nullptr;
  pending_op* of_op = nullptr;
  /// Relaxed: written before the launch, which orders it for the completing
  /// thread; all others only observe.
  std::atomic<step_state*> step{nullptr};
  step_state& state() const noexcept {
    return *step.load(std::memory_order_relaxed);
  }
  /// Launched and not complete, if its completion was requested. For `why`.
  std::atomic<bool> under_way{false};
  /// The stream has begun the work. For the launching thread, if the launch
  /// throws: then no other thread has it. Relaxed, since it orders nothing.
  std::atomic<bool> was_executed{false};

private:
  void run(worker& on) override;
};

/// Additional state of an op whose launch can be pending (wiring_plan:
/// `by_ticket`, `later`).
///
/// A launch by ticket has three phases. After the launch, messages go to
/// readers that the device orders after it. After its execution on the stream,
/// temporaries that this op alone releases are free, in stream order. After its
/// completion, if requested, all other messages are sent. A launch of kind
/// `later` sends all messages on completion, but for that to the next
/// collective of its rank.
class pending_op {
public:
  /// A message that is sent on completion.
  struct message {
    target to;
    std::uint32_t distance;
    handle_id from; ///< the op, or a variable that it writes
  };
  /// Another op for which this op's stream waits before the launch.
  struct awaited {
    pending_op* producer;
    std::uint32_t distance;
    friend bool operator==(const awaited&, const awaited&) = default;
  };

  op_mailbox* box = nullptr;
  stream_actor* on = nullptr;
  bool ends_later = false;
  bool wants_completion = false;
  bool gives_position = false; ///< another stream waits for it
  std::vector<awaited> waits_for;
  /// Devices whose feeds it reads or overwrites. Its stream waits for them too.
  std::vector<std::uint32_t> feeds_of;
  std::vector<message> on_completion;
  /// Shared temporaries that are released on completion: pairs of number and
  /// distance.
  std::vector<std::uint32_t> gives_back_on_completion;
  /// By counter. The launching thread writes a launch's position before it
  /// sends any message about the launch, so readers see it.
  std::unique_ptr<ticket[]> positions;
  std::unique_ptr<pending_launch[]> launches;
};

} // namespace troupe::actors
