// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/stragglers/op_key.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::apps {

/// What a thread has used so far.
struct thread_use {
  std::uint64_t wall_ns = 0;
  std::uint64_t ran_ns = 0;      ///< on a core
  std::uint64_t preemptions = 0; ///< how often it has lost its core
  /// Of the calling thread.
  static thread_use now();
};

/// How long a kernel took that ran between two readings. If its thread lost its
/// core meanwhile, this is the time on the core, because the rest is no
/// property of the op; and nothing if other threads shared the work, because
/// they have done an unknown part of it.
std::optional<std::uint64_t> kernel_ns(const thread_use& begin,
                                       const thread_use& end, bool is_shared);

/// How long the latest runs of kernels took, by op. Kernels only: the time in
/// which a collective or a transfer waits for others is no op's time.
///
/// Thread rule: any thread; `take` one at a time.
class op_times {
public:
  /// A table that makes the kernels of `fast` for devices of `kind` measure
  /// themselves: by two readings of the clock per run; those that take at least
  /// `least_ns` also by readings of `thread_use`, which take half a microsecond
  /// each. They may outlive the object.
  std::shared_ptr<const kernel_table> wrapped(const kernel_table& fast,
                                              device_kind kind);
  static constexpr std::uint64_t least_ns = 100'000;

  /// The milliseconds of runs since the call before, of all devices; the latest
  /// 16 of each kernel. Runs whose time is not known lack.
  std::map<op_key, std::vector<float>> take();

private:
  class run_log;
  class timed_kernel;
  /// The logs of all kernels that there are.
  struct log_list {
    std::mutex mutex; // guards the list
    std::vector<std::weak_ptr<run_log>> logs;
  };
  std::shared_ptr<log_list> list_ = std::make_shared<log_list>();
};

} // namespace troupe::apps
