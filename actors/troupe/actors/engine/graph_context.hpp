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
} // namespace troupe

namespace troupe::actors {

/// What the handles of one running graph share. Constant while steps run,
/// except for what `steps` holds.
struct graph_context {
  const graph::ssa_graph* graph = nullptr; ///< outlives the handles
  /// One per step in flight, and as many more as inputs are steps old: a power
  /// of two. Step s uses number s modulo their number, its *slot*, as do the
  /// values of its temporaries.
  std::vector<std::unique_ptr<step_state>> steps;
  step_id first_step = 0;
  /// The last that has ended. Relaxed: a figure.
  std::atomic<step_id> last_step{0};
  std::vector<std::string> devices; ///< "cpu:0", ...: for errors
  recorder* trace = nullptr;        ///< outlives the handles
  /// Of a run over several processes; else null. Set before the first step.
  std::shared_ptr<const run_members> members;
  /// Called when an op has made a step fail, before others hear of it.
  void (*step_failed)(void* owner, step_state& step) = nullptr;
  /// Called by whoever ends a step, on its thread.
  void (*step_ended)(void* owner, step_state& step) = nullptr;
  void* owner = nullptr;

  std::uint32_t slots() const noexcept {
    return static_cast<std::uint32_t>(steps.size());
  }
  step_state& state_of(step_id step) const {
    return *steps[step & (steps.size() - 1)];
  }

  /// Makes a step fail in the name of an op. Any thread.
  void fail(step_state& step, const graph::op_handle& op,
            std::exception_ptr reason);
  void fail(step_state& step, const graph::op_handle& op, error reason);
  /// Makes all steps under way fail: no further one can run. Any thread.
  void fail_for_good(const error& reason);
  /// Why no further step can run, if none can: the first reason. Any thread.
  std::optional<error> failed_for_good() const;

private:
  mutable std::mutex failing_for_good_;
  std::optional<error> failed_for_good_; // guarded by it
};

} // namespace troupe::actors
