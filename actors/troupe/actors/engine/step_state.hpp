// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/kernels/kernel.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// All that concerns one step in flight: its numbers, what it fetched, how it
/// failed. Steps take turns with as many of these as there are steps in flight
/// and steps that the oldest input is behind: a step is admitted when the step
/// `steps_in_flight` before it has ended.
struct step_state {
  std::uint32_t slot = 0; ///< which of them this is
  /// Relaxed: who computes the step is ordered behind its admission; others
  /// only describe it.
  std::atomic<step_id> id{0};
  /// Per device: shard sizes and where the shard begins.
  std::vector<step_info> devices;
  /// Names that the caller wants, as a mask over the graph's fetch handles.
  std::vector<bool> wanted;
  /// What fetch handles took, by their number.
  std::vector<tensor> fetched;
  /// One of the first steps: inputs of steps before may have no value.
  bool has_no_past = false;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;

  /// Admitted and not ended. Relaxed: who fails steps holds the lock that
  /// orders it with admissions; others only describe.
  std::atomic<bool> under_way{false};
  /// Set by the first failure; ops that have not run then do not. Relaxed: a
  /// late look costs a kernel that runs in vain, and the error itself is read
  /// behind the step's end.
  std::atomic<bool> failed{false};

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

  /// Why it failed, if it did. Any thread.
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
