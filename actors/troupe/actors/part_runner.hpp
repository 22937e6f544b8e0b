// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/job_queue.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::actors {

/// Runs the pieces of one piece of work on the calling thread and on whichever
/// workers are idle. The caller never waits for a helper that has not begun:
/// pieces are taken one by one, so with no idle worker it does them all.
///
/// Thread rule: `run` by one thread at a time.
class part_runner {
public:
  explicit part_runner(job_queue& queue);
  ~part_runner(); ///< waits for helpers that are still in the queue
  part_runner(const part_runner&) = delete;
  part_runner& operator=(const part_runner&) = delete;

  /// Calls `part(i)` once for each i in [0, parts), concurrently for different
  /// i, and returns when all calls have. `part` must not throw.
  void run(std::size_t parts, const std::function<void(std::size_t)>& part);

  /// True if no helper is in the queue. Any thread.
  bool idle() const noexcept;

private:
  class helper;
  void take_parts();

  job_queue& queue_;
  std::vector<std::unique_ptr<helper>> helpers_;
  const std::function<void(std::size_t)>* part_ = nullptr;
  std::size_t parts_ = 0;
  std::atomic<std::size_t> next_{0}; // the next piece to take
  // Pieces that are done. Release by who did one, acquire by `run`.
  std::atomic<std::size_t> done_{0};
  // Helpers inside, plus `closed` while no round is on. A helper adds itself
  // first and looks then: if the gate was closed it leaves without reading
  // anything; if it was open (acquire, pairs with the opening release) the
  // round's members stay until it has left, since `run` closes the gate and
  // waits for the helpers inside before it returns.
  static constexpr int closed = 1 << 30;
  std::atomic<int> gate_{closed};
};

} // namespace troupe::actors
