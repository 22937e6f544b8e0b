// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/ready_op.hpp>
#include <troupe/actors/host.hpp>
#include <troupe/base/random.hpp>
#include <troupe/kernels/stream.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

/// Owns a stream of a device: takes ops that are ready and launches them, one
/// at a time if the stream's width is 1.
///
/// There is no shared ready queue: each stream has its own. A width of 1 makes
/// the actor a serial executor (whichever worker runs it drains it), which
/// keeps a device's data in one core's cache. A wider stream hands its ops to
/// the workers directly, unless it is told to gather.
///
/// Order: ops that one completion makes ready run next, the first told first;
/// ops of other threads come after what is ready already, in their order of
/// arrival.
///
/// Thread rule: `submit` from any thread. At most one thread drains at a time:
/// the inbox says whether one does. It holds `idle_mark` when none does, so the
/// push that replaces the mark is the one that schedules the actor. Pushes are
/// acq_rel and the drain's exchange is acquire: the op's counters and the
/// values behind them come along, and who schedules the actor has seen all that
/// its last drain did.
class stream_actor : public actor_base, public job {
public:
  static constexpr std::size_t no_home = SIZE_MAX;

  /// @param home the worker that the stream prefers; `no_home`: whichever makes
  ///   its ops ready, or has nothing to do
  /// @param shuffle_seed draws which ready op runs next; 0: see above
  stream_actor(caf::actor_config& cfg, std::string name,
               std::unique_ptr<stream> device_stream, job_queue& queue,
               std::size_t home, std::uint64_t shuffle_seed = 0);

  const char* name() const override { return name_.c_str(); }
  stream& device_stream() noexcept { return *stream_; }
  job_queue& queue() noexcept { return queue_; }
  /// Whether a value made on `producer` can be waited for on this stream.
  bool can_wait_for(const stream_actor& producer) const noexcept;

  /// Gives the device's stream back; it has called all completions then. No
  /// step may be under way.
  void close() noexcept { stream_.reset(); }

  /// True if the actor is in no queue and no thread drains it, but for one
  /// that is on its way out. Any thread.
  bool idle() const noexcept;

  /// Says that `op` will be submitted here, and makes room for it and what else
  /// of it may be ready at the same time: no step takes memory for that. Before
  /// the first step.
  void expect(const ready_op& op, std::size_t at_once = 1) {
    chooses_ |= priority_of(op) != 0;
    expected_ += at_once;
    if (expected_ > ready_.capacity())
      ready_.reserve(2 * expected_);
  }
  /// Whether it stays with the worker that makes its ops ready, whatever its
  /// home, and drains them there, however wide it is; unseen by others as long
  /// as ops are short (`worker::keep`). A hint, any thread.
  void gather(bool yes) noexcept {
    gathered_.store(yes, std::memory_order_relaxed);
  }
  bool gathered() const noexcept {
    return gathered_.load(std::memory_order_relaxed);
  }
  /// Takes an op that is ready.
  void submit(ready_op& op) {
    if (draining_ == this) {
      ready_.push_back(&op);
    } else {
      submit_from_elsewhere(op);
    }
  }

  void run(worker& on) override;

protected:
  bool on_message(caf::mailbox_element& element, context ctx) override;
  /// Called before an op is launched, by the draining thread, once `admits`
  /// has been.
  virtual void admit(ready_op& op) { (void)op; }
  void admits() noexcept { admits_ = true; }

private:
  /// The stream that this thread drains.
  static inline constinit thread_local stream_actor* draining_ = nullptr;

  static std::int32_t priority_of(const ready_op& op) noexcept {
    return op.op() ? op.op()->priority : 0;
  }
  void submit_wide(ready_op& op);
  void submit_from_elsewhere(ready_op& op);
  void take_inbox();
  ready_op* next_op();
  ready_op* next_by_priority();
  void launch(ready_op& op, worker& on);
  ready_op* next_shuffled();

  std::string name_;
  std::unique_ptr<stream> stream_;
  job_queue& queue_;
  std::size_t home_;
  std::atomic<bool> gathered_{false};
  bool admits_ = false;          // asks before it launches
  bool wide_;                    // its ops go to the workers directly
  bool chooses_;                 // it is not always the last of `ready_`
  std::size_t expected_ = 0;     // ops that may be ready at once
  std::vector<ready_op*> ready_; // last runs next; the draining thread's
  alignas(64) std::atomic<ready_op*> inbox_; // newest first; or the idle mark

  bool shuffled_;
  splitmix64 draw_; // the draining thread's
};

} // namespace troupe::actors
