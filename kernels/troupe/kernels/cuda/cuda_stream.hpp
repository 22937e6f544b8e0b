// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/all.hpp>
#include <troupe/kernels/cuda/driver.hpp>
#include <troupe/kernels/device.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::cuda {

class cuda_recording;
class cuda_stream;

/// What a CUDA device and its streams share. Its memory outlives the device.
struct device_state {
  std::shared_ptr<driver> api;
  int gpu = 0;
  device_id id;
  device_options options;

  /// Counts the positions of all streams, so that positions have one order.
  /// Relaxed: a position is passed on together with what it guards.
  std::atomic<ticket> last_position{0};
  fault_report* fault = nullptr; ///< in pinned memory
  /// Waits, on the calling thread's stream or else on the calling thread, until
  /// memory with this mark can be used.
  void wait_for(const reuse_mark& mark);

  std::mutex listing; // guards what follows
  std::vector<cuda_stream*> streams;
  std::uint32_t last_number = 0;
};

/// A queue of a GPU. Launched work runs at once on the calling thread and
/// queues kernels and copies, which run later.
///
/// A ticket is a count of launches, waits and copies. An event is recorded for
/// it only if another stream or the host waits for it, or if the launcher asks
/// for a position or a completion.
///
/// Completions are called by a thread of the stream, which is started for the
/// first one.
class cuda_stream final : public stream {
public:
  cuda_stream(std::shared_ptr<device_state> on, const stream_options& options);
  /// Waits for its work; all completions have been called then.
  ~cuda_stream() override;

  const std::string& name() const noexcept override { return name_; }
  int width() const noexcept override { return 1; }
  launch_result launch(work& w, const launch_options& wanted) override;
  void wait(stream& producer, ticket position) noexcept override;
  bool can_wait_for(const stream& producer) const noexcept override;
  ticket position() const noexcept override;
  bool finished(ticket position) const noexcept override;
  void synchronize(ticket position) override;

  /// The stream whose work the calling thread queues; null: none. Memory that
  /// the thread takes and returns is ordered by it.
  static cuda_stream* current() noexcept { return current_; }
  /// As long as it lives, the calling thread queues work on `on`, which is then
  /// the current stream. What was queued gets a position when it ends.
  class scope {
  public:
    explicit scope(cuda_stream& on) noexcept;
    ~scope();
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

  private:
    cuda_stream& on_;
    cuda_stream* before_;
  };

  device_state& state() const noexcept { return *state_; }
  driver& api() const noexcept { return *state_->api; }
  /// For work that several queues do together, and for recordings.
  gpu_queue& queue() noexcept { return *queue_; }
  std::uint32_t number() const noexcept { return number_; }

  /// Queues a kernel whose threads are at least `threads`, or one block per row
  /// if `blocks` is given. Nothing is queued for no thread.
  template <class Body>
  void run(const launch_shape& shape,
           const typename Body::arguments& arguments) {
    if (shape.blocks > 0)
      api().launch(*queue_, {all_bodies::number<Body>()}, shape, &arguments,
                   sizeof arguments);
  }
  /// The same, for a kernel with a thread per element.
  template <class Body>
  void run_for_each(std::int64_t count,
                    const typename Body::arguments& arguments) {
    run<Body>(shape_for(count), arguments);
  }
  void multiply(const matrix_product& p) { api().multiply(*queue_, p); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    api().copy(*queue_, to, from, bytes);
  }

  /// Blocks until all that is queued is done, and copies memory of the GPU to
  /// `to`. For the few numbers that the shape of a result depends on.
  void read(void* to, const std::byte* from, std::size_t bytes);

  /// A copy to pageable host memory. The GPU fills pinned memory; before the
  /// completion, a thread of the stream copies that to `to`.
  struct staged_copy {
    buffer staging;
    tensor to;
  };
  /// Called from work that this stream executes.
  void finish_later(staged_copy copy) { staged_.push_back(std::move(copy)); }
  /// Keeps pinned memory until what is queued so far is done.
  void keep(buffer staging);
  /// Like `wait`, but throws what the driver throws. `wait` then blocks the
  /// thread until the producer is done.
  void order_after(cuda_stream& producer, ticket position);

  ///@{
  /// From `begin_recording` on, what is queued belongs to `to` and does not run
  /// (cuda_recording.hpp). Blocks until what was queued before is done, and
  /// throws what the driver throws. Others that wait for this stream wait for
  /// nothing: what they know of has been reached. No work is being executed.
  void begin_recording(cuda_recording& to);
  void end_recording() noexcept;
  /// Null: work runs.
  cuda_recording* recording() const noexcept { return recording_; }
  ///@}
  /// Where work finds the number of its step in GPU memory, because the host
  /// does not know it yet. Null: the host knows it.
  const std::uint32_t* step_number() const;

  /// Calls `whole` when all that is queued so far is done.
  void notify(completion& whole);
  /// Blocks until all that is queued is done, or the device has failed.
  void drain() noexcept;

private:
  using shared_event = std::shared_ptr<gpu_event>;

  /// Something to do when a position has been reached.
  struct notice {
    ticket position = 0;
    shared_event event;
    completion* whole = nullptr;
    bool tells_success = false;
    std::vector<staged_copy> copies = {};
  };

  static launch_shape shape_for(std::int64_t count) noexcept;
  launch_result record_launch(work& w, const launch_options& wanted);
  ticket advance();
  shared_event event_at(ticket position,
                        const cuda_recording* asking = nullptr) const;
  shared_event record() const;
  void drop_reached() const;
  void add_notice(completion* whole, bool tells_success,
                  std::vector<staged_copy> copies);
  void serve_notices();
  void end(notice& n) noexcept;
  void throw_fault();

  static inline constinit thread_local cuda_stream* current_ = nullptr;

  std::shared_ptr<device_state> state_;
  std::string name_;
  std::uint32_t number_ = 0;
  std::unique_ptr<gpu_queue> queue_;
  std::vector<staged_copy> staged_; // of the work that is being executed
  // Written with the lock held, while no work is being executed. Others than
  // the threads that queue work here read it with the lock held.
  cuda_recording* recording_ = nullptr;

  mutable std::mutex mutex_; // guards what follows
  ticket queued_ = 0;        // the last position
  mutable ticket reached_ = 0;
  int queueing_ = 0; // threads that queue work which has no position yet
  mutable std::deque<std::pair<ticket, shared_event>> events_; // by position
  mutable std::vector<shared_event> spare_;
  std::deque<std::pair<shared_event, buffer>> kept_;
  std::deque<notice> notices_;
  std::condition_variable noticed_; // a notice came, or one was served
  bool closing_ = false;
  std::thread thread_;
};

/// The stream of a kernel of a CUDA device.
cuda_stream& stream_of(const stream* queue);

} // namespace troupe::cuda
