// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/training_run.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/apps/delays/slow_ops.hpp>
#include <troupe/apps/elastic/elastic_checks.hpp>
#include <troupe/apps/printed.hpp>
#include <troupe/apps/results/run_trace.hpp>
#include <troupe/apps/training/after_saving.hpp>
#include <troupe/apps/training/device_choice.hpp>
#include <troupe/apps/training/placing.hpp>
#include <troupe/apps/training/train_checks.hpp>
#include <troupe/apps/training/training_options.hpp>
#include <troupe/apps/training/training_text.hpp>
#include <troupe/apps/training/training_watch.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <caf/io/middleman.hpp>

#include <utility>

namespace troupe::apps {

namespace {

// For printf.
using ull = unsigned long long;

program_bundle load(const network_options& options, trace::phase_log& log) {
  log.begin("read program");
  return load_program(options.program, options.loss);
}

} // namespace

training_run::training_run(const train_options& given, rank_part& part)
  : given_(given), part_(part), writes_files_(part.is_first()),
    options_(writes_files_ ? given : without_files(given)),
    bundle_(load(given.network, start_)) {
  start_.begin("prepare");
  require_loss(bundle_);
  if (given.data.feeds.empty())
    refuse_custom_gradient(given.network, bundle_);
  check_verification(given);
  wanted_ = make_train_options(given, bundle_);
  slow_down(wanted_, bundle_.main, given.slow);
  if (wanted_.threads == 0)
    wanted_.threads = part.default_threads();
  require_fetches(bundle_, wanted_.fetches);
  check_part(given, bundle_, part);
  if (!given.place.empty())
    places_ = read_places(given.place);
  wanted_.hooks.device_instances =
    make_devices(wanted_.devices, {wanted_.waits_by, wanted_.sums_in_order});
  require_ops(bundle_, wanted_.devices);
  if (!given.dry_run)
    prepare_backends(wanted_.devices, worker_count(wanted_.threads));
  start_system();
  start_.begin("read data");
  open_source();
  held_out_samples_ = open_held_out(given, bundle_, host_);
  steps_ = count_steps(given, *source_); // throws if there are too many
  wanted_.lowering.batch = source_->batch_samples(0);
  snapshots_.emplace(requested_snapshots(given, part),
                     identity_of(given, bundle_, *source_), rank_of(part));
  state_.position = snapshots_->start();
  if (state_.position.steps > steps_)
    throw error(errc::invalid_argument,
                "the snapshot has " + std::to_string(state_.position.steps)
                  + " steps, this run ends after " + std::to_string(steps_));
  written_steps_ = state_.position.steps;
  outputs_.emplace(options_, bundle_, written_steps_);
  start_.begin("make parameters");
  parameters_ = make_parameters(given, bundle_, host_);
  start_.end();
}

void training_run::start_system() {
  if (part_.has_others() || part_.is_elastic())
    config_.load<caf::io::middleman>();
  system_ = make_actor_system(config_, wanted_.threads);
  wanted_.system = system_.get();
}

void training_run::open_source() {
  source_.reset(); // the memory of its samples
  source_ = make_source(given_, bundle_, host_,
                        part_.share_of(wanted_.devices.size()), *system_);
}

void training_run::choose_devices(const stop_request& stop) {
  const auto& network = given_.network;
  if (part_.has_others() || part_.is_elastic()) {
    if (!network.strategy.empty()) // processes share no parameters
      wanted_.strategy = strategy_for(network, wanted_.devices);
  } else if (snapshots_->has_devices() && is_automatic(network)) {
    snapshots_->choose_devices(wanted_);
  } else if (is_automatic(network) && !given_.deterministic
             && places_.empty()) {
    choose_cpu_devices(
      wanted_, network, bundle_, source_->batch(0, 0),
      {.begins =
         [] { progress{}.note("trying one CPU device and one per worker"); },
       .stop = &stop});
  } else {
    wanted_.strategy = strategy_for(network, wanted_.devices);
  }
}

int training_run::run() {
  const stop_request stop; // before this, a signal ends the process
  start_.begin("choose devices");
  std::optional<stop_watch> ends_late_stop(std::in_place, stop,
                                           end_if_it_takes(patience_for_stops));
  requests_.emplace();
  begin_board(); // a wrong address is told before devices are tried
  choose_devices(stop);
  if (part_.is_elastic() && wanted_.strategy == graph::merge_strategy::reduce)
    divided_ = divided_state{*parameters_};
  snapshots_->restore(wanted_.devices.size(), *parameters_);
  wanted_.parameters = parameters_;
  start_.end();
  held_out_test held_out(bundle_, held_out_samples_.get(), wanted_, part_,
                         stop);
  if (options_.profile)
    profile_.emplace(steps_, wanted_);
  bool is_over = false;
  while (!is_over && !stop.stopped())
    try {
      begin_epoch(stop);
      train_epoch(held_out, stop);
      is_over = true;
    } catch (const error& failure) {
      if (is_of_stop(failure, stop))
        break;
      if (!goes_on_after(failure))
        throw;
      leave_epoch(failure, stop);
    }
  ends_late_stop.reset(); // from here on, results are saved
  if (!is_over || report_.stopped)
    return tell_stop(state_.position.steps, steps_, part_);
  if (profile_) {
    const auto share = part_.share_of(wanted_.devices.size());
    profile_->print(bundle_.main,
                    source_->batch_samples(0) * share.devices
                      / share.all_devices,
                    options_.json);
  }
  if (part_.is_first())
    save(held_out);
  else
    snapshots_->require_written();
  if (!trace_failure_.empty())
    throw error(errc::io_failure, trace_failure_);
  return 0;
}

/// A file that was asked for fails the command, after it has saved the rest.
/// One that somebody has begun meanwhile does not.
void training_run::note_trace_failure(const executor& exe, progress& shown) {
  const auto why = exe.trace_failure();
  if (!why)
    return;
  const auto text = "the trace ends early: " + *why;
  if (run_.trace->file.empty())
    shown.note(text);
  else
    trace_failure_ = text;
}

void training_run::tell_begin(executor& exe, progress& shown) {
  if (epochs_ > 1) {
    shown.note(printed("goes on after step %llu in %zu %s",
                       ull{state_.position.steps}, part_.size(),
                       part_.size() == 1 ? "rank" : "ranks"));
    return;
  }
  describe_graph(exe, given_, run_.strategy, part_, shown);
  if (const auto epoch = source_->steps_per_epoch(); epoch < given_.accumulate)
    shown.note(
      printed("warning: --accumulate %u: an epoch has only %llu steps, "
              "and its last one updates the parameters",
              given_.accumulate, ull{epoch}));
  tell_of_start(given_, shown);
  tell_of_unused_range(part_, shown);
}

/// Steps of an update that is made again are recorded only once.
void training_run::record(const step_metrics& metrics, progress& shown) {
  is_repeated_ = metrics.step < written_steps_;
  last_line_ = to_json_line(metrics);
  if (is_repeated_)
    return;
  outputs_->add(metrics, shown);
  written_steps_ = metrics.step + 1;
}

training_observer training_run::observe(executor& exe, held_out_test& held_out,
                                        const stop_request& stop,
                                        progress& shown) {
  training_observer observer;
  observer.stop = [&] { return stop.stopped(); };
  observer.fetched = [&](const step_result& result) {
    if (!is_repeated_)
      outputs_->add(result);
    if (profile_)
      profile_->take();
    if (board_)
      board_->tell(result);
  };
  observer.step = [&](const step_metrics& metrics) {
    record(metrics, shown);
    if (board_)
      board_->remember(metrics);
    shown.update(
      {metrics.step + 1, steps_, metrics.loss, metrics.samples_per_s});
  };
  observer.epoch = [&](std::uint64_t epoch, double loss, double rate) {
    const auto per_epoch = source_->steps_per_epoch();
    const auto epochs = (steps_ + per_epoch - 1) / per_epoch;
    shown.note(printed("epoch %llu/%llu  loss %.4f  %.0f samples/s", ull{epoch},
                       ull{epochs}, loss, rate)
               + held_out.tell(exe, shown));
  };
  observer.rest_between_epochs = held_out.has_samples();
  observer.done = [&](const run_position& done) { step_is_done(done); };
  const auto is_due = [](std::uint64_t interval, std::uint64_t step) {
    return interval > 0 && step % interval == 0;
  };
  observer.pauses_after = [this, is_due](std::uint64_t step) {
    return is_due(given_.verify_every, step)
           || updates().is_due(given_.snapshot_every, step);
  };
  observer.pause = [&, is_due](const run_position& done) {
    if (is_due(given_.verify_every, done.steps))
      exe.require_same_replicas();
    if (updates().is_due(given_.snapshot_every, done.steps)) {
      snapshots_->take(exe, done);
      tell_notes(*snapshots_, shown);
    }
  };
  return observer;
}

void training_run::begin_board() {
  progress shown;
  if (given_.dashboard.is_wanted() && !board_)
    board_ = make_training_board(given_.dashboard, bundle_, part_, shown);
}

/// The latest steps may show why a step has failed, unless the cause is in
/// another rank.
void training_run::dump_after(const error& failure, executor& exe) {
  if (failure.where().step && failure.code() != errc::cancelled
      && failure.code() != errc::peer_failure)
    requests_->dumps().dump(exe, flight_dumps::cause::failed_step);
}

void training_run::train_epoch(held_out_test& held_out,
                               const stop_request& stop) {
  auto shown =
    part_.is_first() ? progress{} : progress{progress::form::nothing};
  begin_board();
  auto fetches = split_names(given_.fetch);
  if (given_.dashboard.is_wanted())
    add_board_fetches(bundle_.main, part_, run_.fetches, fetches);
  executor exe(bundle_.main, run_);
  divided_.note(exe, part_.rank() * wanted_.devices.size(),
                wanted_.devices.size());
  if (profile_)
    profile_->begin(exe);
  tell_begin(exe, shown);
  snapshots_->begin(run_);
  tell_notes(*snapshots_, shown);
  exe.continue_from(state_.position.steps);
  const stop_watch watch(stop, [&] { exe.cancel(); });
  const auto on_board =
    board_ ? board_->show(exe, state_.position.steps) : nullptr;
  data_wait waits_for_data;
  const auto tell = [this](const std::string& what) {
    tell_on_stderr(what);
    if (board_)
      board_->warn(what);
  };
  const auto ranks =
    given_.dry_run ? nullptr : watch_ranks(exe, op_times_, part_, tell);
  watchdog_context about{.data = &waits_for_data};
  if (part_.has_others())
    about.rank = part_.rank();
  if (ranks)
    about.usual = [&ranks](handle_id op) { return ranks->usual(op); };
  const auto watchdog = watch_steps(exe, given_.watchdog, requests_->dumps(),
                                    std::move(about), tell);
  const trace_requests::subject of_requests{*requests_, exe, *run_.trace};
  // In an elastic job, the values after each step are kept.
  const auto in_flight =
    part_.is_elastic() ? 1 : executor_options{}.steps_in_flight;
  auto observer = observe(exe, held_out, stop, shown);
  observer.waits_for_data = &waits_for_data;
  if (ranks)
    observer.done = [&ranks, then = observer.done](const run_position& done) {
      ranks->step_ended();
      then(done);
    };
  auto position = state_.position;
  try {
    run_training(exe, *source_, position, updates(), in_flight, fetches,
                 observer, report_);
  } catch (const error& failure) {
    messages_before_ += exe.stats().messages;
    dump_after(failure, exe);
    if (board_ && failure.code() != errc::cancelled)
      board_->fail(failure.message());
    throw;
  }
  if (report_.stopped)
    return;
  exe.synchronize_parameters();
  note_trace_failure(exe, shown);
  if (const auto why = exe.stats().not_captured; !why.empty())
    shown.note("steps are not captured: " + why);
  auto stats = exe.stats();
  stats.messages += messages_before_;
  if (part_.is_first())
    print_summary(report_, stats, given_.json);
  if (!given_.dry_run) // a dry run computes no loss
    warn_of_loss(report_, shown);
}

void training_run::save(const held_out_test& held_out) {
  if (!options_.save.empty()) {
    refresh_coalesced(bundle_, *parameters_);
    save_program(bundle_, bundle_.batch, *parameters_, options_.save);
  }
  run_after_saving(options_.save, [&] {
    outputs_->finish(bundle_, report_.history, options_, host_);
    if (held_out.has_samples())
      print_held_out(held_out.at_end(*parameters_), options_.json);
    outputs_->require_metrics();
    snapshots_->require_written();
  });
}

} // namespace troupe::apps
