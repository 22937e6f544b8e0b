// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/data/batch_source.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace troupe {

/// How an application's own batches form a run.
struct generated_batches {
  std::uint64_t steps_per_epoch = 1; ///< at least 1
  /// Samples of each whole batch, at least 1. They weigh the losses of an
  /// epoch.
  std::int64_t batch = 1;
};

/// Makes the batch of step `index` of an epoch. What it throws ends the run.
using batch_function =
  std::function<feed_map(std::uint64_t epoch, std::uint64_t index)>;

/// Batches that `make` makes when the run wants them. With
/// `make_prefetching_source` an actor calls it ahead of the run, by a bounded
/// number of batches. Throws error(invalid_argument) if there is no function,
/// no step or no sample.
std::unique_ptr<batch_source> make_generator_source(batch_function make,
                                                    generated_batches form);

/// Batches that other threads or actors push, in the order in which they come,
/// for data that nobody can ask for. The queue is bounded: a producer that is
/// faster than the run waits in `push`, or is refused by `try_push`.
///
/// Thread rule: the run calls the functions of `batch_source`; the others from
/// any thread.
class batch_queue final : public batch_source {
public:
  /// Throws error(invalid_argument) if there are no steps, no samples, or no
  /// room.
  /// @param most batches that wait, at least 1
  batch_queue(generated_batches form, std::size_t most);

  /// Adds a batch; waits while the queue is full. False if the queue is closed:
  /// the batch is dropped.
  bool push(feed_map batch);
  /// Adds a batch, unless the queue is full or closed: it then returns false,
  /// and `batch` is as before.
  bool try_push(feed_map& batch);
  /// No more batches come. Those that wait are still trained; then the run
  /// ends. Producers that wait return.
  void close();

  std::uint64_t steps_per_epoch() const override;
  std::int64_t batch_samples(std::uint64_t index) const override;
  /// Waits until there is a batch or the queue is closed.
  bool has_ended() override;
  /// Waits for the next batch, whatever its number. Throws error(cancelled) if
  /// the queue is closed and empty.
  feed_map batch(std::uint64_t epoch, std::uint64_t index) override;

private:
  const generated_batches form_;
  const std::size_t most_;
  std::mutex mutex_; // guards the members below
  std::condition_variable changed_;
  std::deque<feed_map> waiting_;
  bool is_closed_ = false;
};

} // namespace troupe
