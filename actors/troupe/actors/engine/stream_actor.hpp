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

/// Owns a stream of a device. Takes ready ops and launches them, one at a time
/// if the stream's width is 1.
///
/// There is no shared ready queue: each stream has its own. With width 1 the
/// actor is a serial executor that any worker can drain. This keeps a device's
/// data in one core's cache. A wider stream passes its ops directly to the
/// workers, unless it stays with one.
///
/// Order: ops that the last run made ready run next, in the order in which they
/// became ready. Ops from other threads run after the ops that are already
/// ready, in order of arrival.
///
/// Thread rule: `submit` from any thread. At most one thread drains at a time.
/// The inbox holds `idle_mark` if no thread drains, so the push that replaces
/// the mark schedules the actor. Pushes are acq_rel and the drain's exchange is
/// acquire. This publishes the op's counters and the values that they guard.
/// The thread that schedules the actor has seen everything that its last drain
/// did.
class stream_actor : public actor_base, public job {
public:
  static constexpr std::size_t no_home = SIZE_MAX;

  /// @param home the worker that the stream prefers; `no_home`: the worker that
  ///   makes its ops ready, or an idle one
  /// @param shuffle_seed seed of a random order of ready ops; 0: the order
  /// above
  stream_actor(caf::actor_config& cfg, std::string name,
               std::unique_ptr<stream> device_stream, job_queue& queue,
               std::size_t home, std::uint64_t shuffle_seed = 0);
  ~stream_actor() override;

  const char* name() const override { return name_.c_str(); }
  stream& device_stream() noexcept { return *stream_; }

  /// Destroys the device's stream, which has then called all completions. No
  /// step may be running.
  void close() noexcept { stream_.reset(); }

  /// True if the actor is in no queue and no thread drains it, except one that
  /// is about to leave. Any thread.
  bool idle() const noexcept;

  /// Announces that `op` will be submitted here, up to `at_once` times before
  /// it runs.
  void expect(const ready_op& op, std::size_t at_once = 1) {
    chooses_ |= priority_of(op) != 0;
    expected_ += at_once;
  }
  /// Reserves room for all expected submissions, so that no step allocates.
  /// Called once, before the first step.
  void reserve_room() { ready_.reserve(expected_); }
  /// If true, the stream stays with the worker that makes its ops ready and is
  /// drained there, regardless of its home and width. It is hidden from other
  /// workers as long as ops are short (`worker::keep`). A hint. Any thread.
  void stay_with_worker(bool yes) noexcept {
    way_.store(yes      ? way::kept
               : drawn_ ? way::drawn
               : wide_  ? way::direct
                        : way::inbox,
               std::memory_order_relaxed);
  }
  /// Takes a ready op.
  void submit(ready_op& op) {
    if (draining_ == this)
      ready_.push_back(&op);
    else if (const auto to = way_.load(std::memory_order_relaxed);
             to == way::direct)
      submit_to_workers(op);
    else if (to == way::drawn)
      submit_to_drawn(op);
    else
      submit_to_inbox(op, to == way::kept);
  }

  void run(worker& on) override;

protected:
  bool on_message(caf::mailbox_element& element, context ctx) override;
  /// Called by the draining thread before it launches an op, if `admits` was
  /// called.
  virtual void admit(ready_op& op) { (void)op; }
  void admits() noexcept { admits_ = true; }

private:
  /// Where ready ops go.
  enum class way : std::uint8_t {
    inbox,  ///< to the inbox; any worker drains it
    kept,   ///< to the inbox; the worker that submits to it drains it
    direct, ///< to the workers
    drawn,  ///< to `drawn_`
  };
  class drawn_ops;

  /// The stream that this thread drains.
  static inline constinit thread_local stream_actor* draining_ = nullptr;

  static std::int32_t priority_of(const ready_op& op) noexcept {
    return op.op() ? op.op()->priority : 0;
  }
  void submit_to_workers(ready_op& op) {
    const auto priority = chooses_ && priority_of(op) > 0
                            ? job_priority::high
                            : job_priority::normal;
    if (auto* w = worker::current_of(queue_))
      w->run_soon(op, priority);
    else
      queue_.push(op, priority);
  }
  void submit_to_drawn(ready_op& op);
  /// @param stays true if the submitting worker drains the stream
  void submit_to_inbox(ready_op& op, bool stays);
  void take_inbox();
  ready_op* next_op();
  ready_op* next_by_priority();
  void launch(ready_op& op, worker& on);

  std::string name_;
  std::unique_ptr<stream> stream_;
  job_queue& queue_;
  std::size_t home_;
  std::atomic<way> way_;
  bool admits_ = false;      // calls `admit` before a launch
  bool wide_;                // several ops can run at the same time
  bool chooses_;             // the next op is not always the last of `ready_`
  std::size_t expected_ = 0; // maximum number of ready ops
  // the last one runs next; owned by the draining thread
  std::vector<ready_op*> ready_;
  alignas(64) std::atomic<ready_op*> inbox_; // newest first; or the idle mark

  bool shuffled_;
  splitmix64 draw_;                  // owned by the draining thread
  std::unique_ptr<drawn_ops> drawn_; // if wide and shuffled
};

} // namespace troupe::actors
