// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/ids.hpp>

#include <map>
#include <mutex>
#include <optional>

namespace troupe::actors {

class transport;
struct graph_context;
struct step_state;

/// Puts steps under way and makes them fail: a failure of a step is one of all
/// behind it. Its lock orders the two, so that no step is admitted between a
/// failure and the look at who fails.
///
/// Thread rule: `admit` and `require_can_run` by the executor's thread; all
/// others from any thread.
class step_failures {
public:
  /// @param transfers null if the graph has none; both outlive this
  step_failures(const graph_context& of, transport* transfers)
    : context_(of), transfers_(transfers) {}

  /// Puts step `id` under way. It fails at once if it cannot run any more, or
  /// if one of the steps from `oldest` on before it has failed: those that
  /// nobody has waited for yet.
  void admit(step_id id, step_id oldest, bool has_no_past);
  /// Makes step `first` and those behind it that are under way fail.
  void fail_from(step_id first, const error& reason) noexcept;
  /// The same of those behind a step that has failed.
  void fail_behind(step_id failed) noexcept;

  // Of a run over several processes.

  /// A step has failed in another process.
  void failed_elsewhere(step_id id, const error& reason);
  /// A process is gone: no step from `first_without` on can run.
  void process_is_gone(step_id first_without, const error& reason);
  /// Throws why step `id` cannot run, if it cannot for lack of a process.
  void require_can_run(step_id id) const;

private:
  const graph_context& context_;
  transport* transfers_;
  mutable std::mutex mutex_; // guards all below and what steps are under way
  step_id admitted_ = 0;     // steps that have been
  /// Failures of steps that are not admitted here yet.
  std::map<step_id, error> ahead_;
  /// Why no step from `abandoned_from_` on can run.
  std::optional<error> abandoned_;
  step_id abandoned_from_ = 0;
};

} // namespace troupe::actors
