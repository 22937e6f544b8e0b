// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/kernels/kernel.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::actors {

/// All that concerns one step in flight. There is one per slot; step s uses
/// slot s mod the number of slots.
///
/// Why slots do not collide: a step is admitted when the step
/// `steps_in_flight` before it has ended, and no edge is longer than the
/// graph's largest distance D; so messages under way concern at most
/// steps_in_flight + D consecutive steps, which is the number of slots.
struct step_state {
  std::uint32_t slot = 0;
  /// Relaxed: who computes the step is ordered behind its admission; others
  /// only describe it.
  std::atomic<step_id> id{0};
  /// Per device: shard sizes and where the shard begins.
  std::vector<step_info> devices;
  /// Names that the caller wants, as a mask over the graph's fetch handles.
  std::vector<bool> wanted;
  /// What fetch handles took, by their number.
  std::vector<tensor> fetched;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;

  /// Set by the first failure; ops that have not run then do not. Relaxed: a
  /// late look costs a kernel that runs in vain, and the error itself is read
  /// behind `remaining`.
  std::atomic<bool> failed{false};
  /// Handles whose end the step waits for. The decrement is acq_rel: who takes
  /// it to zero has seen all that the others wrote.
  std::atomic<std::uint32_t> remaining{0};

  bool idle(std::size_t device) const {
    return devices[device].shard_samples == 0;
  }

  /// Keeps the first error of the step. Any thread.
  void fail(error reason) {
    std::lock_guard guard{mutex_};
    if (!first_error_)
      first_error_ = std::move(reason);
    failed.store(true, std::memory_order_relaxed);
  }

  std::string failure_text() {
    std::lock_guard guard{mutex_};
    return first_error_ ? first_error_->what() : "";
  }

  std::optional<error> take_error() {
    std::lock_guard guard{mutex_};
    return std::exchange(first_error_, std::nullopt);
  }

private:
  std::mutex mutex_;
  std::optional<error> first_error_;
};

} // namespace troupe::actors
