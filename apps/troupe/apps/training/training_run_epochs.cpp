// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/training_run.hpp>

#include <troupe/apps/elastic/elastic_checks.hpp>
#include <troupe/apps/printed.hpp>
#include <troupe/apps/results/run_trace.hpp>
#include <troupe/apps/training/train_checks.hpp>
#include <troupe/apps/training/training_options.hpp>
#include <troupe/apps/training/training_watch.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe::apps {

/// Brings all ranks of the epoch to the same state.
void training_run::begin_epoch(const stop_request& stop) {
  const auto trace_before = run_.trace ? run_.trace->file : std::string{};
  run_ = wanted_;
  if (!given_.dry_run) // not the kernels of tests
    measure_ops(run_, op_times_);
  run_.trace = trace_of(given_, part_);
  run_.trace->before = start_;
  if (run_.flight_recorder.level != trace_level::off)
    run_.flight_recorder.stacks = requests_->stacks();
  if (!part_.is_elastic())
    return spread(stop);
  if (epochs_++ > 0) {
    open_source();
    snapshots_->begin_epoch(rank_of(part_));
  } else {
    back_up();
  }
  require_trusted_network(given_, part_);
  state_ = meet_others();
  if (state_.position.steps == 0 && part_.may_have_lost_all()
      && !divided_.is_divided())
    throw error(errc::not_found,
                "all ranks that had the parameters have ended at once; with "
                "--snapshots, --resume auto goes on from the last snapshot");
  if (writes_files_ && state_.position.steps > written_steps_) {
    outputs_->add_line(state_.last_line); // of the step that it has skipped
    written_steps_ = state_.position.steps;
  }
  write_files_if_first();
  back_up();
  spread(stop);
  tell_of_trace(trace_before);
}

/// @param before file of the epoch that has ended
void training_run::tell_of_trace(const std::string& before) const {
  if (!before.empty() && part_.is_first())
    progress{}.note(printed(
      "the trace in %s ends, because the ranks change; after step %llu it goes "
      "on in %s",
      before.c_str(), static_cast<unsigned long long>(state_.position.steps),
      run_.trace->file.c_str()));
}

/// If a rank that joins has another program, the values of the ranks do not fit
/// together. The newcomer ends then, and the others go on without it.
rank_state training_run::meet_others() {
  try {
    return exchange_or_go_back();
  } catch (const error& e) {
    const bool is_newcomer =
      part_.epoch() == 1 || (part_.is_late() && state_.position.steps == 0);
    const bool is_misfit = e.code() == errc::order_mismatch
                           || e.code() == errc::shape_mismatch
                           || e.code() == errc::dtype_mismatch;
    if (is_newcomer || !is_misfit)
      throw;
    throw error(errc::peer_failure, e.message());
  }
}

rank_state training_run::exchange_or_go_back() {
  const auto exchange = [this] {
    return exchange_state(part_, *parameters_, state_, divided_.names());
  };
  auto all = exchange();
  const bool is_lost =
    !all || (all->position.steps == 0 && part_.may_have_lost_all());
  if (is_lost && divided_.is_divided()) {
    go_back();
    all = exchange(); // ranks can have found different snapshots
  }
  return all.value();
}

/// A rank has ended, and with it a part of the optimizer state.
void training_run::go_back() {
  const auto found = snapshots_->go_back(wanted_.devices.size(), *parameters_);
  if (!found)
    divided_.begin_again(*make_parameters(given_, bundle_, host_),
                         *parameters_);
  state_ = {found.value_or(run_position{}), {}};
  forget_steps_from(state_.position.steps, report_);
  kept_steps_ = report_.steps;
  written_steps_ = std::min(written_steps_, state_.position.steps);
  if (writes_files_) // without the lines of the steps that are done again
    outputs_.emplace(options_, bundle_, written_steps_);
  back_up();
}

/// Keeps the values at `state_`, before the epoch's first step.
void training_run::back_up() {
  backup_.take(*parameters_, wanted_.devices.size());
  has_done_update_ = false;
}

/// To the values at `state_`.
void training_run::restore_backup() {
  divided_.clear(*parameters_);
  backup_.restore(*parameters_);
  if (has_done_update_)
    divided_.collect(*parameters_);
}

void training_run::spread(const stop_request& stop) {
  run_.places = places_;
  part_.spread(run_, options_.ranks);
  if (!run_.nodes)
    return;
  run_.nodes->deterministic = given_.deterministic;
  const auto fetches_rate =
    given_.dashboard.is_wanted()
    && !shown_learning_rate(bundle_.main, part_).empty();
  run_.nodes->agreed = {{"precision", given_.network.precision},
                        {"--dashboard, which all ranks need or none",
                         fetches_rate ? "given" : "not given"}};
  run_.nodes->check = [this, &stop, begin = now_ns(),
                       has_told = false]() mutable {
    constexpr std::uint64_t patience_ns = 5'000'000'000;
    part_.require_epoch();
    if (stop.stopped())
      throw error(errc::cancelled, "stopped while waiting for other ranks");
    if (now_ns() - begin > patience_ns && !std::exchange(has_told, true))
      progress{}.note(part_.text_of_waiting());
  };
}

/// The first rank may have ended.
void training_run::write_files_if_first() {
  if (!part_.is_first() || std::exchange(writes_files_, true))
    return;
  options_ = given_;
  require_output_places(options_);
  written_steps_ = state_.position.steps;
  outputs_.emplace(options_, bundle_, written_steps_, state_.last_line);
}

/// A rank that is told to end, as when its host loses the launcher, says so to
/// the others: to them it is one that has ended.
bool training_run::goes_on_after(const error& failure) const {
  return part_.is_elastic()
         && (failure.code() == errc::peer_failure
             || failure.code() == errc::cancelled);
}

/// A signal to the job reaches the other ranks first, or last.
bool training_run::is_of_stop(const error& failure,
                              const stop_request& stop) const {
  constexpr std::chrono::milliseconds between_ranks{100};
  if (part_.has_others() && !stop.stopped()
      && (failure.code() == errc::peer_failure
          || failure.code() == errc::cancelled))
    std::this_thread::sleep_for(between_ranks);
  return stop.stopped()
         && (failure.code() == errc::cancelled
             || failure.code() == errc::peer_failure);
}

void training_run::leave_epoch(const error& failure, const stop_request& stop) {
  if (part_.is_first())
    progress{}.note("the ranks change: " + failure.message());
  if (const auto file = requests_->take_cut_trace())
    tell_on_stderr("the trace in " + *file
                   + " ends, because the ranks change; troupe trace start "
                     "begins another one");
  restore_backup();
  forget_unfinished_update();
  try {
    part_.enter_next_epoch([&] { return stop.stopped(); });
  } catch (const error& other) {
    if (other.code() != errc::cancelled)
      throw;
  }
}

/// Gradients that a rank has added up are lost with it. So an elastic job goes
/// back to the end of an update, where no rank has any.
void training_run::step_is_done(const run_position& done) {
  if (!part_.is_elastic()) {
    state_.position = done;
    return;
  }
  if (updates().ends_with(done.steps)) {
    state_ = {done, last_line_};
    kept_steps_ = report_.steps;
    kept_samples_ = report_.samples;
    backup_.take(*parameters_, wanted_.devices.size());
    has_done_update_ = true;
    part_.tell_step_done();
  }
  constexpr std::chrono::milliseconds between_looks{20};
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_at_epoch_ < between_looks)
    return;
  looked_at_epoch_ = now;
  part_.require_epoch();
}

void training_run::forget_unfinished_update() {
  report_.history.steps.resize(kept_steps_);
  report_.steps = kept_steps_;
  report_.samples = kept_samples_;
}

} // namespace troupe::apps
