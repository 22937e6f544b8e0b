// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>

#include <map>
#include <mutex>
#include <optional>

namespace troupe::actors {

class collective_ranks;
class transport;
struct graph_context;
struct step_state;

/// Admits steps and makes them fail. If a step fails, all later running steps
/// fail too. The lock orders admissions and failures, so that no step is
/// admitted between a failure and the choice of the steps that fail with it.
///
/// Thread rule: `admit` and `require_can_run` by the executor's thread; all
/// others from any thread.
class step_failures {
public:
  /// @param transfers, ranks null if the graph has none; all must outlive the
  ///   object
  step_failures(const graph_context& of, transport* transfers,
                collective_ranks* ranks)
    : context_(of), transfers_(transfers), ranks_(ranks) {}

  /// Admits step `id`. It fails at once if no step can run any more, or if an
  /// earlier step from `oldest` on has failed. `oldest` is the first step whose
  /// result has not been collected.
  void admit(step_id id, step_id oldest, bool has_no_past);
  /// The error of steps that fail because an earlier one has.
  static error behind_a_failure();
  /// Makes step `first` and all later running steps fail.
  void fail_from(step_id first, const error& reason) noexcept;
  /// The same for the steps after a failed one.
  void fail_behind(step_id failed) noexcept;
  /// Called when a running step has failed: it no longer waits for values of
  /// other processes.
  void stop_waiting(step_id failed, const error& reason) noexcept;

  // For runs over several processes.

  /// Called when a step has failed in another process.
  void failed_elsewhere(step_id id, const error& reason);
  /// Called when a process is gone: no step from `first_without` on can run.
  void process_is_gone(step_id first_without, const error& reason);
  /// Why step `id` cannot run, if a process is gone.
  std::optional<error> obstacle_to(step_id id) const;
  /// Throws it.
  void require_can_run(step_id id) const;

private:
  const graph_context& context_;
  transport* transfers_;
  collective_ranks* ranks_;
  // guards all members below and which steps are running
  mutable std::mutex mutex_;
  step_id admitted_ = 0; // number of admitted steps
  /// Failures of steps that have not been admitted here yet.
  std::map<step_id, error> ahead_;
  /// Why no step from `abandoned_from_` on can run.
  std::optional<error> abandoned_;
  step_id abandoned_from_ = 0;
};

} // namespace troupe::actors
