// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/dashboard/dashboard_options.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/results/metrics_file.hpp>
#include <troupe/dashboard/board.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::apps {

/// The dashboard of `troupe train`: shows one executor after the other.
class training_board {
public:
  /// Listens, and tells on stderr where. Throws as `make_board` does.
  training_board(const dashboard_options& options, const program_bundle& trains,
                 const rank_part& part, progress& shown);

  /// Shows a run until the result is destroyed.
  /// @param first_step of the whole training that the executor runs
  std::unique_ptr<dashboard::board::shown_run> show(executor& run,
                                                    std::uint64_t first_step);
  /// The figures of a step, before `tell` adds it to the curves.
  void remember(const step_metrics& metrics);
  void tell(const step_result& result);
  /// See `dashboard::board::fail`. Any thread.
  void fail(const std::string& why) { board_->fail(why); }
  /// See `dashboard::board::warn`. Any thread.
  void warn(const std::string& what) { board_->warn(what); }

private:
  std::string command_;
  std::string learning_rate_; // variable; empty: none is fetched
  std::unique_ptr<dashboard::board> board_;
  std::uint64_t first_step_ = 0;
  step_metrics metrics_;
};

/// The variable of the learning rate, which a run with a board fetches; empty
/// if its steps cannot. Ranks of a job cannot fetch a rate that the program
/// computes, as with a schedule.
std::string shown_learning_rate(const graph::program& main,
                                const rank_part& part);

/// Adds what boards show to the variables that can be fetched, and to those
/// that each step fetches. The same for all ranks, also for one without a
/// board, because all ranks of a job must fetch the same.
void add_board_fetches(const graph::program& trains, const rank_part& part,
                       std::vector<std::string>& possible,
                       std::vector<std::string>& wanted);

/// The dashboard of this rank. The first rank has the port that is given, the
/// others have a free one each. Their hosts may not have the given address:
/// that is no reason for the job to fail, so they have none then, and a note
/// says so.
std::unique_ptr<training_board>
make_training_board(dashboard_options options, const program_bundle& trains,
                    const rank_part& part, progress& shown);

} // namespace troupe::apps
