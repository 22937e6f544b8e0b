// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

/// How long kernels have run, by type of op. Kernels only: the time in which a
/// collective or a transfer waits for others is no op's time.
///
/// Thread rule: `wrapped` once, before the kernels are made; all others from
/// any thread.
class op_times {
public:
  /// A table that makes the kernels of `fast` for devices of `kind` measure
  /// themselves, at the cost of two readings of the clock per run. They must
  /// not outlive the object.
  std::shared_ptr<const kernel_table> wrapped(const kernel_table& fast,
                                              device_kind kind);

  /// The types of which kernels have been made, in the order of the first ones.
  std::vector<std::string> types() const;
  /// Nanoseconds since the start, by type, in the order of `types`.
  std::vector<std::uint64_t> totals() const;

private:
  /// On a line of its own, because all workers add to it.
  struct alignas(64) counter {
    explicit counter(std::string of) : type(std::move(of)) {}
    std::string type;
    // Relaxed: a sum of independent terms, of which a late one counts later.
    std::atomic<std::uint64_t> ns{0};
  };
  counter& counter_of(const std::string& type);

  mutable std::mutex mutex_; // guards the list, which only grows
  std::deque<counter> counters_;
};

} // namespace troupe::apps
