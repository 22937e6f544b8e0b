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

/// One step's run of an op whose launch may be pending: what the stream runs,
/// and who is told when it is done. It stands apart from the mailbox because
/// the op may be ready for its next step before this one is done.
///
/// A completion may come from any thread. It is handed to the op's stream,
/// whose drain then sends the messages: so all messages of a stream's ops come
/// from its drains, and none is under way when the stream is idle.
class pending_launch final : public work, private ready_op {
public:
  void execute(stream& on) override;
  void completed(std::exception_ptr failure) noexcept override;

  engine* of = nullptr;
  pending_op* of_op = nullptr;
  /// Relaxed: written before the launch, which orders it for who completes it;
  /// others only look.
  std::atomic<step_state*> step{nullptr};
  step_state& state() const noexcept {
    return *step.load(std::memory_order_relaxed);
  }
  /// Launched and not complete, if its completion is wanted. For `why`.
  std::atomic<bool> under_way{false};

private:
  void run(worker& on) override;
};

/// An op whose launch may be pending (wiring_plan: `by_ticket`, `later`): what
/// an ordinary op has no use for.
///
/// A launch by ticket is in three parts: the launch, after which messages go to
/// readers that the device orders behind it; its execution on the stream, after
/// which temporaries that it alone gives back are free, in stream order; and,
/// if anything needs it, its completion, after which all other messages go. A
/// launch that ends later has its messages all on completion.
class pending_op {
public:
  /// A message that is sent on completion.
  struct message {
    target to;
    std::uint32_t distance;
    handle_id from; ///< the op, or a variable that it makes
  };
  /// Another op that the op's stream waits for before the launch.
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
  std::vector<message> on_completion;
  /// Shared temporaries that it gives back on completion: pairs of number and
  /// distance.
  std::vector<std::uint32_t> gives_back_on_completion;
  /// By counter. A launch's position is written by the launching thread before
  /// any message that tells of it, so readers see it.
  std::unique_ptr<ticket[]> positions;
  std::unique_ptr<pending_launch[]> launches;
};

} // namespace troupe::actors
