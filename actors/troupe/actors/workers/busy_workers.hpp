// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <sys/types.h>

namespace troupe::actors {

/// Notes what each worker runs, on which thread and since when, for those who
/// ask busy threads for their call stacks. Costs a reading of the clock per op,
/// so a graph has one only if somebody may ask.
///
/// Thread rule: `begins`, `helps` and `ends` on the thread that serves the
/// worker, `on` on any. In a signal handler on the thread that serves the
/// worker, `on` is exact: members are written in order, and the handler sees
/// that order. Any other thread can get the times of one op and the name of the
/// next, unless the worker is stuck. Memory order: relaxed, because nothing
/// else is read by what is noted.
class busy_workers {
public:
  explicit busy_workers(std::size_t workers);

  /// What a worker runs.
  struct work {
    handle_id op = no_handle;
    step_id step = 0;
    std::uint64_t since = 0; ///< in `ticks`
    pid_t thread = 0;
    bool is_help = false; ///< runs parts of an op that another worker runs
  };

  std::size_t workers() const noexcept { return workers_; }
  void begins(std::size_t worker, handle_id op, step_id step) noexcept;
  /// `worker` runs parts of the op of worker `of`, which waits for them.
  void helps(std::size_t worker, std::size_t of) noexcept;
  void ends(std::size_t worker) noexcept;
  /// Nothing if the worker runs no op. Safe in signal handlers.
  std::optional<work> on(std::size_t worker) const noexcept;

private:
  struct alignas(64) note {
    std::atomic<handle_id> op{no_handle};
    std::atomic<pid_t> thread{0};
    std::atomic<step_id> step{0};
    std::atomic<std::uint64_t> since{0};
    std::atomic<bool> is_help{false};
  };
  void begin(note& to, handle_id op, step_id step, bool is_help) noexcept;

  std::size_t workers_;
  std::unique_ptr<note[]> notes_;
};

} // namespace troupe::actors
