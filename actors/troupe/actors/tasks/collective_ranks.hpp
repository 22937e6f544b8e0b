// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::actors {

struct step_state;

/// Which call of a step a call is.
struct step_call {
  step_id step = 0;
  std::uint64_t index = 0; ///< the calls that the step makes before it
  bool updates = false;    ///< the step makes those that belong to updates, too
};

/// The ends of the group of a graph's devices, for collectives with a handle
/// per device. A step makes as many calls on each of them, also if it fails:
/// all collectives of the graph if it updates the parameters, else those that
/// do not belong to updates.
///
/// Workers without jobs look whether calls can go on (`job_queue::attach`), if
/// ranks are in other processes.
///
/// Thread rule: `join` once, before the first step; `made_between_steps`
/// between steps; `number_calls` by the executor's thread; all others from any
/// thread.
class collective_ranks final : public outside_work {
public:
  /// @param devices number of devices of the graph, which are the ranks
  /// @param calls_per_step number of collectives of the graph that belong to
  ///   each step
  /// @param calls_per_update number of those that belong to updates
  /// @param slots at least the number of steps that can run at the same time
  collective_ranks(std::size_t devices, std::uint64_t calls_per_step,
                   std::uint64_t calls_per_update, std::size_t slots)
    : ends_(devices), calls_per_step_(calls_per_step),
      calls_per_update_(calls_per_update), calls_of_(slots) {}

  /// Detaches itself.
  ~collective_ranks() override;

  /// Takes the ends of this process.
  void join(std::vector<std::unique_ptr<comm::communicator>> ends);
  /// Lets the workers of `queue`, which outlives the object, look.
  void attach_to(job_queue& queue) noexcept;

  /// Reserves the numbers of a step's calls. Called for each step in turn,
  /// before it is admitted.
  void number_calls(step_id step, bool updates);
  /// Makes the next call of a device of this process, in a step. A step can
  /// fail on another thread meanwhile: then the call is given up.
  launch_result start(std::size_t device, const comm::collective_call& call,
                      completion& whole, const step_state& step) const;
  /// Which call of a step has this number; nothing if the call was made between
  /// steps, or its step ended long ago.
  std::optional<step_call> in_step(ticket number) const;
  /// True if the device is in this process, and `join` was called.
  bool has(std::size_t device) const noexcept {
    return ends_[device] != nullptr;
  }
  /// The end of a device of this process.
  comm::communicator& of(std::size_t device) const { return *ends_[device]; }

  /// Each end of this process has made so many calls since the last step. No
  /// step is running.
  void made_between_steps(std::uint64_t calls) noexcept { next_ += calls; }
  /// Fails the calls of a step that wait for other processes. Does nothing if
  /// all ranks are in this process, where they make their calls in any case.
  void give_up(step_id step, const error& reason);
  /// Ends all calls: no further step can run.
  void leave(const error& reason);

  void begin_looking() noexcept override;
  void look() noexcept override;
  void end_looking() noexcept override;

private:
  comm::communicator* any_end() const noexcept;
  bool all_are_here() const;

  /// The calls of a step have consecutive numbers.
  struct numbered_calls {
    step_id step = ~step_id{0};
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  numbered_calls calls_of(step_id step) const;

  std::vector<std::unique_ptr<comm::communicator>> ends_; // by device
  std::uint64_t calls_per_step_;
  std::uint64_t calls_per_update_;
  std::uint64_t next_ = 1; // number of the next call
  mutable std::mutex numbering_;
  std::vector<numbered_calls> calls_of_; // by step modulo slots; guarded
  job_queue* queue_ = nullptr;           // to which it is attached
};

} // namespace troupe::actors
