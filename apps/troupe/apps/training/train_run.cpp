// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/train_run.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/apps/dashboard/training_board.hpp>
#include <troupe/apps/data/training_source.hpp>
#include <troupe/apps/delays/slow_ops.hpp>
#include <troupe/apps/elastic/divided_state.hpp>
#include <troupe/apps/elastic/elastic_checks.hpp>
#include <troupe/apps/elastic/parameter_backup.hpp>
#include <troupe/apps/elastic/state_exchange.hpp>
#include <troupe/apps/printed.hpp>
#include <troupe/apps/profile/run_profile.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/results/run_outputs.hpp>
#include <troupe/apps/results/run_trace.hpp>
#include <troupe/apps/results/trace_requests.hpp>
#include <troupe/apps/snapshots/snapshot_request.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/apps/training/after_saving.hpp>
#include <troupe/apps/training/device_choice.hpp>
#include <troupe/apps/training/held_out_test.hpp>
#include <troupe/apps/training/placing.hpp>
#include <troupe/apps/training/train_checks.hpp>
#include <troupe/apps/training/training_options.hpp>
#include <troupe/apps/training/training_text.hpp>
#include <troupe/apps/training/training_watch.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/kernels/memory/address_space.hpp>
#include <troupe/training/training_loop.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

// For printf.
using ull = unsigned long long;

program_bundle load(const network_options& options, trace::phase_log& log) {
  log.begin("read program");
  return load_program(options.program, options.loss);
}

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
  std::size_t epochs_ = 0; // of the job, that this rank has begun
  training_report report_;
};

training_run::training_run(const train_options& given, rank_part& part)
  : given_(given), part_(part), writes_files_(part.is_first()),
    options_(writes_files_ ? given : without_files(given)),
    bundle_(load(given.network, start_)) {
  start_.begin("prepare");
  require_loss(bundle_);
  if (given.data.feeds.empty())
    refuse_custom_gradient(given.network, bundle_);
  check_verification(given);
  check_trace_folder(given);
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
    throw usage_error(
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
  return 0;
}

/// Brings all ranks of the epoch to the same state.
void training_run::begin_epoch(const stop_request& stop) {
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
  state_ = exchange_or_go_back();
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
  run_.nodes->agreed = {{"precision", given_.network.precision}};
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
  restore_backup();
  forget_unfinished_update();
  try {
    part_.enter_next_epoch([&] { return stop.stopped(); });
  } catch (const error& other) {
    if (other.code() != errc::cancelled)
      throw;
  }
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
    dump_after(failure, exe);
    if (board_ && failure.code() != errc::cancelled)
      board_->fail(failure.message());
    throw;
  }
  if (report_.stopped)
    return;
  exe.synchronize_parameters();
  if (const auto why = exe.trace_failure())
    shown.note("the trace ends early: " + *why);
  if (const auto why = exe.stats().not_captured; !why.empty())
    shown.note("steps are not captured: " + why);
  if (part_.is_first())
    print_summary(report_, exe.stats(), given_.json);
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

} // namespace

int run_train(const train_options& options) {
  rank_part part;
  part.use_interface(options.ranks.interface);
  require_output_places(part.is_first() ? options : without_files(options));
  const auto code = training_run{options, part}.run();
  if (code == 0)
    part.tell_all_done();
  return code;
}

} // namespace troupe::apps
