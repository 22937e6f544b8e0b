// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/dashboard/training_board.hpp>
#include <troupe/apps/data/training_source.hpp>
#include <troupe/apps/elastic/divided_state.hpp>
#include <troupe/apps/elastic/parameter_backup.hpp>
#include <troupe/apps/elastic/state_exchange.hpp>
#include <troupe/apps/profile/run_profile.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/results/run_outputs.hpp>
#include <troupe/apps/results/trace_requests.hpp>
#include <troupe/apps/snapshots/snapshot_request.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/apps/stragglers/op_times.hpp>
#include <troupe/apps/training/held_out_test.hpp>
#include <troupe/apps/training/train_run.hpp>
#include <troupe/training/training_loop.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// One rank's run of the command. In an elastic job it consists of several
/// parts, one per epoch of the job: when a rank has ended, the others go back
/// to the end of their last update, and make a new run with those that live.
class training_run {
public:
  /// Reads the program and opens all files.
  training_run(const train_options& given, rank_part& part);
  /// Trains and saves. Returns the exit code.
  int run();

private:
  void start_system();
  void choose_devices(const stop_request& stop);
  void open_source();
  void begin_epoch(const stop_request& stop);
  void tell_of_trace(const std::string& before) const;
  rank_state meet_others();
  rank_state exchange_or_go_back();
  void go_back();
  void back_up();
  void restore_backup();
  void write_files_if_first();
  void train_epoch(held_out_test& held_out, const stop_request& stop);
  void spread(const stop_request& stop);
  bool goes_on_after(const error& failure) const;
  bool is_of_stop(const error& failure, const stop_request& stop) const;
  void dump_after(const error& failure, executor& exe);
  void leave_epoch(const error& failure, const stop_request& stop);
  training_observer observe(executor& exe, held_out_test& held_out,
                            const stop_request& stop, progress& shown);
  void begin_board();
  void note_trace_failure(const executor& exe, progress& shown);
  void tell_begin(executor& exe, progress& shown);
  void record(const step_metrics& metrics, progress& shown);
  void step_is_done(const run_position& done);
  void forget_unfinished_update();
  void save(const held_out_test& held_out);
  update_steps updates() const {
    return {steps_, source_->steps_per_epoch(), given_.accumulate};
  }

  const train_options& given_;
  rank_part& part_;
  bool writes_files_;     // this is the first rank
  train_options options_; // given_, or without files
  arena host_{make_host_memory_source()};
  trace::phase_log start_; // what happened before the first step
  const program_bundle bundle_;
  op_times op_times_;
  executor_options wanted_; // on this rank's devices
  std::vector<graph::handle_place> places_;
  executor_options run_; // on those of all ranks of the epoch
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<batch_source> source_;
  std::unique_ptr<batch_source> held_out_samples_;
  std::uint64_t steps_ = 0;
  std::optional<run_snapshots> snapshots_;
  std::optional<run_outputs> outputs_;
  std::shared_ptr<scope> parameters_;
  std::optional<run_profile> profile_;
  std::unique_ptr<training_board> board_;  // if it is wanted
  std::optional<trace_requests> requests_; // once it can train
  rank_state state_;
  parameter_backup backup_;         // at `state_`, in an elastic job
  std::string last_line_;           // of metrics, of the last step
  std::uint64_t written_steps_ = 0; // whose results are written
  bool is_repeated_ = false;        // the last step
  std::uint64_t kept_steps_ = 0;    // of `report_`, up to `state_`
  std::uint64_t kept_samples_ = 0;
  divided_state divided_;
  bool has_done_update_ = false; // in this epoch of the job
  std::chrono::steady_clock::time_point looked_at_epoch_;
  std::size_t epochs_ = 0;            // of the job, that this rank has begun
  std::uint64_t messages_before_ = 0; // of its earlier epochs
  std::string trace_failure_;         // of the file that was asked for
  training_report report_;
};

} // namespace troupe::apps
