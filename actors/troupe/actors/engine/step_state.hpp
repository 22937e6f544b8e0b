// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/workers/sharing_choice.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/stream.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
struct step_in_flight;
} // namespace troupe

namespace troupe::actors {

/// The state of one step in flight: its numbers, fetched values and error.
/// Steps reuse these objects in turn. There are as many as steps in flight plus
/// the largest distance of a delayed input. A step is admitted when the step
/// `steps_in_flight` before it has ended.
struct step_state {
  std::uint32_t slot = 0; ///< number of this object
  /// Relaxed: threads that compute the step are ordered after its admission,
  /// and all others only observe.
  std::atomic<step_id> id{0};
  /// By device: the shard that its replica computes.
  std::vector<step_info> shards;
  /// By device, in the whole batch. Until count_samples is done, only those of
  /// devices in this process are known.
  std::vector<std::int64_t> samples;
  /// By device; empty if the graph has no gather_losses.
  std::vector<double> losses;
  /// Where the feeds of a device have arrived.
  struct arrival {
    stream* on = nullptr; ///< copies them; null if the step has no values
    ticket position = 0;
  };
  /// Per device.
  std::vector<arrival> fed;
  /// The names that the caller requested, as a mask over the graph's fetch
  /// handles.
  std::vector<bool> wanted;
  /// Values of the fetch handles, by their number.
  std::vector<tensor> fetched;
  /// False: parameters are updated in a later step, so ops that belong to
  /// updates do nothing (`op_handle::only_in_updates`).
  bool updates = true;
  /// True for the first steps: delayed inputs may have no value.
  bool has_no_past = false;
  /// How the workers share its ops.
  op_sharing sharing = op_sharing::long_ops;
  /// Set if the thread that ends the step delivers its result.
  step_in_flight* delivers = nullptr;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;

  /// The step is one launch of what was recorded: its handles get no messages.
  /// Relaxed, for observers.
  std::atomic<bool> is_launched{false};
  /// Admitted and not ended. Relaxed: a thread that fails steps holds the lock
  /// that orders it with admissions, and all others only observe.
  std::atomic<bool> under_way{false};
  /// Set by the first failure; ops that have not run yet are then skipped.
  /// Relaxed: a late read only wastes the run of a kernel, and the error itself
  /// is read after the step's end.
  std::atomic<bool> failed{false};

  bool idle(std::size_t device) const {
    return shards[device].shard_samples == 0;
  }

  /// Keeps the first error of the step. Any thread.
  void fail(error reason) {
    std::lock_guard guard{mutex_};
    if (!first_error_)
      first_error_ = std::move(reason);
    failed.store(true, std::memory_order_relaxed);
  }

  /// The step's error if it failed. Any thread.
  error reason() const {
    std::lock_guard guard{mutex_};
    return first_error_ ? *first_error_
                        : error{errc::cancelled, "the step has failed"};
  }

  std::optional<error> take_error() {
    std::lock_guard guard{mutex_};
    return std::exchange(first_error_, std::nullopt);
  }

private:
  mutable std::mutex mutex_;
  std::optional<error> first_error_;
};

} // namespace troupe::actors
