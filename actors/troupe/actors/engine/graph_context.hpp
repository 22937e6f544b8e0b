// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/remote/run_members.hpp>
#include <troupe/base/error.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe {
class recorder;
class run_pace;
} // namespace troupe

namespace troupe::actors {

/// State shared by the handles of one running graph. Constant while steps run,
/// except for the contents of `steps`.
struct graph_context {
  const graph::ssa_graph* graph = nullptr; ///< outlives the handles
  /// One per step in flight, plus the largest distance of a delayed input,
  /// rounded up to a power of two. Step s uses *slot* s modulo their number,
  /// and so do the values of its temporaries.
  std::vector<std::unique_ptr<step_state>> steps;
  /// The last step that has ended. Relaxed, because it is only a statistic.
  static constexpr step_id none = ~step_id{0};
  std::atomic<step_id> last_step{none};
  std::vector<std::string> devices; ///< "cpu:0", ...: for errors
  recorder* trace = nullptr;        ///< outlives the handles
  run_pace* pace = nullptr;         ///< outlives the handles; null: none
  /// Set for a run over several processes, before the first step; otherwise
  /// null.
  std::shared_ptr<const run_members> members;
  /// Called when an op has made a step fail, before others are notified.
  void (*step_failed)(void* owner, step_state& step) = nullptr;
  /// Called on the thread that ends a step.
  void (*step_ended)(void* owner, step_state& step) = nullptr;
  void* owner = nullptr;

  std::uint32_t slots() const noexcept {
    return static_cast<std::uint32_t>(steps.size());
  }
  step_state& state_of(step_id step) const {
    return *steps[step & (steps.size() - 1)];
  }

  /// Makes a step fail with an error of the op. Any thread.
  void fail(step_state& step, const graph::op_handle& op,
            std::exception_ptr reason);
  void fail(step_state& step, const graph::op_handle& op, error reason);
  /// The same for a step that is launched as a whole.
  void fail(step_state& step, std::exception_ptr reason);
  /// Makes all running steps fail. No further step can run. Any thread.
  void fail_for_good(const error& reason);
  /// The first reason why no further step can run, if there is one. Any thread.
  std::optional<error> failed_for_good() const;

private:
  mutable std::mutex failing_for_good_;
  std::optional<error> failed_for_good_; // guarded by the mutex
};

} // namespace troupe::actors
