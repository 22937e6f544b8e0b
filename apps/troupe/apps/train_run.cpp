// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/train_run.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/apps/data/dataset.hpp>
#include <troupe/apps/data/prefetching_source.hpp>
#include <troupe/apps/device_choice.hpp>
#include <troupe/apps/held_out_test.hpp>
#include <troupe/apps/printed.hpp>
#include <troupe/apps/profile/run_profile.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/results/output_places.hpp>
#include <troupe/apps/results/run_outputs.hpp>
#include <troupe/apps/snapshots/run_snapshots.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/apps/training.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/atomic_file.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_folder.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <utility>

namespace troupe::apps {

namespace {

// For printf.
using ull = unsigned long long;

void check_places(const train_options& options) {
  const std::array<output_place, 3> outputs{
    {{"--metrics", options.metrics, true},
     {"--loss-curve", options.loss_curve},
     {"--fetch-out", options.fetch_out}}};
  const std::array<std::string, 4> read{options.network.program,
                                        options.data.feeds, options.data.data,
                                        options.params};
  require_places_of_their_own(outputs, read, options.save);
  // A program may be saved to the folder that it was read from.
  const std::array<output_place, 1> saved{{{"--save", options.save}}};
  require_places_of_their_own(saved, std::span{read}.subspan(1, 2), "");
}

/// The feeds that `--feeds` can hold. They include the gradient of the loss, if
/// the gradient scale is custom, and the persistable variables.
std::vector<feed_info> wanted_feeds(const train_options& options,
                                    const program_bundle& bundle) {
  std::vector<feed_info> feeds = bundle.feeds;
  const std::string gradient = graph::gradient_name(bundle.loss);
  if (options.network.gradient_scale == "custom"
      && !find_feed(feeds, gradient)) {
    shape dims = bundle.main.main().var(bundle.loss).dims;
    feed_info fed{gradient, dtype::float32, dims, std::nullopt};
    fed.whole = dims.rank() == 0 || dims[0] >= 0;
    feeds.push_back(std::move(fed));
  }
  for (feed_info& feed : describe_persistable(bundle.main))
    feeds.push_back(std::move(feed));
  return feeds;
}

std::unique_ptr<batch_source> open_source(const train_options& options,
                                          const program_bundle& bundle,
                                          arena& memory,
                                          batch_share share = {}) {
  const data_options& data = options.data;
  if (!data.feeds.empty())
    return open_feeds(data, wanted_feeds(options, bundle), memory, share);
  const std::int64_t batch = choose_batch(data, bundle);
  if (!data.data.empty())
    return make_dataset_source(
      load_dataset(data.data, bundle.feeds, dataset_part::train, memory),
      {.batch = batch, .seed = options.seed, .share = share}, memory);
  if (!data.synthetic && !options.dry_run)
    throw usage_error("train needs --data, --feeds or --synthetic");
  return make_synthetic_source(bundle.feeds, batch, options.seed, memory,
                               share);
}

/// Prefetches batches, except synthetic ones, which are generated only once.
std::unique_ptr<batch_source> make_source(const train_options& options,
                                          const program_bundle& bundle,
                                          arena& memory, batch_share share,
                                          caf::actor_system& system) {
  auto source = open_source(options, bundle, memory, share);
  if (options.data.data.empty() && options.data.feeds.empty())
    return source;
  constexpr std::size_t batches_ahead = 2;
  return make_prefetching_source(std::move(source), batches_ahead, system);
}

std::shared_ptr<scope> make_parameters(const train_options& options,
                                       const program_bundle& bundle,
                                       arena& memory) {
  auto parameters = std::make_shared<scope>();
  run_startup(bundle.startup, *parameters, options.seed);
  if (!options.params.empty())
    load_parameters(bundle.main, options.params, *parameters, memory);
  return parameters;
}

std::uint64_t count_steps(const train_options& options,
                          const batch_source& source) {
  if (options.steps > 0)
    return options.steps;
  const auto epochs = std::max<std::uint64_t>(1, options.epochs);
  if (epochs > std::numeric_limits<std::uint64_t>::max() / 2
                 / source.steps_per_epoch())
    throw usage_error("--epochs " + std::to_string(epochs) + " of "
                      + std::to_string(source.steps_per_epoch())
                      + " steps are more than can be counted");
  return epochs * source.steps_per_epoch();
}

void describe_graph(const executor& exe, const train_options& options,
                    graph::merge_strategy strategy, const rank_part& part,
                    progress& shown) {
  const executor_stats stats = exe.stats();
  const auto count = exe.graph().devices.size();
  auto on = describe_devices(options.network, count / part.size());
  if (part.has_others())
    on += " in each of " + std::to_string(part.size()) + " ranks";
  if (count > 1)
    on += ", " + std::string(graph::to_string(strategy));
  shown.note(printed("%s on %s: %zu op actors, %zu variable actors, %zu stream "
                     "actors, %zu messages per step",
                     options.network.program.c_str(), on.c_str(),
                     stats.op_actors, stats.variable_actors,
                     stats.stream_actors, stats.messages_per_step));
}

/// Notes that steps count from the first: saved parameters do not record how
/// many steps the earlier run took.
void tell_of_start(const train_options& options, progress& shown) {
  if (!options.params.empty())
    shown.note("parameters from " + options.params
               + "; steps and epochs of this run count from the first");
}

training_report train(executor& exe, batch_source& source,
                      const train_options& options, run_snapshots& snapshots,
                      run_outputs& outputs, run_profile* profile,
                      const stop_request& stop, held_out_test& held_out,
                      progress& shown) {
  const std::uint64_t steps = count_steps(options, source);
  const std::uint64_t whole = steps / source.steps_per_epoch();
  const std::uint64_t epochs =
    steps % source.steps_per_epoch() == 0 ? whole : whole + 1;
  training_observer observer;
  observer.stop = [&] { return stop.stopped(); };
  observer.fetched = [&](const step_result& result) {
    outputs.add(result);
    if (profile)
      profile->take(exe);
  };
  observer.step = [&](const step_metrics& metrics) {
    outputs.add(metrics, shown);
    shown.update(
      {metrics.step + 1, steps, metrics.loss, metrics.samples_per_s});
  };
  observer.epoch = [&](std::uint64_t epoch, double loss, double rate) {
    shown.note(printed("epoch %llu/%llu  loss %.4f  %.0f samples/s", ull{epoch},
                       ull{epochs}, loss, rate)
               + held_out.tell(exe, shown));
  };
  observer.rest_between_epochs = held_out.has_samples();
  const auto is_due = [](std::uint64_t interval, std::uint64_t step) {
    return interval > 0 && step % interval == 0;
  };
  observer.pauses_after = [&](std::uint64_t step) {
    return is_due(options.verify_every, step)
           || is_due(options.snapshot_every, step);
  };
  observer.pause = [&](const run_position& done) {
    if (is_due(options.verify_every, done.steps))
      exe.require_same_replicas();
    if (is_due(options.snapshot_every, done.steps))
      snapshots.take(exe, done, shown);
  };
  return run_training(exe, source, snapshots.start(), steps,
                      executor_options{}.steps_in_flight,
                      split_names(options.fetch), observer);
}

void print_summary(const training_report& report, const executor_stats& stats,
                   bool json) {
  if (!json) {
    std::fprintf(stderr, "%s\n",
                 printed("trained %llu step%s in %.2f s: %.0f samples/s, %llu "
                         "messages",
                         ull{report.steps}, report.steps == 1 ? "" : "s",
                         report.seconds, report.samples_per_s(),
                         ull{stats.messages})
                   .c_str());
    return;
  }
  nlohmann::ordered_json result;
  result["steps"] = report.steps;
  if (report.steps > 0) // a snapshot may have had all steps
    result["loss"] = report.history.steps.back();
  result["seconds"] = report.seconds;
  result["samples_per_s"] = report.samples_per_s();
  result["op_actors"] = stats.op_actors;
  result["variable_actors"] = stats.variable_actors;
  result["messages"] = stats.messages;
  std::printf("%s\n", result.dump().c_str());
}

/// Returns the exit code.
int tell_stop(std::uint64_t steps, std::uint64_t of_steps,
              const rank_part& part) {
  if (part.is_first())
    std::fprintf(stderr, "troupe: stopped after step %llu of %llu\n",
                 ull{steps}, ull{of_steps});
  return 1;
}

/// Warns if a loss was not finite: the training itself continues to its end.
void warn_of_loss(const training_report& report, progress& shown) {
  const auto& losses = report.history.steps;
  const auto lost = std::ranges::find_if(
    losses, [](double loss) { return !std::isfinite(loss); });
  if (lost != losses.end())
    shown.note(printed("warning: the loss of step %lld is not finite; "
                       "--check-nan names the op that begins it",
                       static_cast<long long>(lost - losses.begin())));
}

void print_held_out(const hits& found, bool json) {
  if (!json) {
    std::printf("held_out_accuracy=%.4f correct=%lld total=%lld\n",
                found.accuracy(), static_cast<long long>(found.correct),
                static_cast<long long>(found.total));
    return;
  }
  nlohmann::ordered_json result;
  result["held_out_accuracy"] = found.accuracy();
  result["correct"] = found.correct;
  result["total"] = found.total;
  std::printf("%s\n", result.dump().c_str());
}

/// The held-out samples of the training data. Null if there are none, if the
/// network is not a classifier, or in a dry run.
std::unique_ptr<batch_source> open_held_out(const train_options& options,
                                            const program_bundle& bundle,
                                            arena& memory) {
  if (options.dry_run || !has_held_out(options.data.data)
      || !find_classifier(bundle.test))
    return nullptr;
  return make_dataset_source(load_dataset(options.data.data, bundle.feeds,
                                          dataset_part::held_out, memory),
                             {.batch = 256, .shuffle = false}, memory);
}

/// Runs `work`, which comes after saving. If it fails, the error also says that
/// the trained program is saved.
template <class Function>
void run_after_saving(const train_options& options, Function work) {
  const auto kept = "; the trained program is saved in " + options.save;
  try {
    work();
  } catch (const error& failure) {
    if (options.save.empty())
      throw;
    throw error(failure.code(), failure.message() + kept, failure.where());
  } catch (const std::bad_alloc&) {
    if (options.save.empty())
      throw;
    throw error(errc::out_of_memory, out_of_memory_text() + kept);
  }
}

/// Only the first rank of a job writes files.
train_options without_files(train_options options) {
  options.save.clear();
  options.metrics.clear();
  options.loss_curve.clear();
  options.fetch_out.clear();
  options.profile = false;
  return options;
}

/// With `--strategy none`, devices do not agree on parameters.
void check_verification(const train_options& options) {
  if (options.verify_every > 0 && options.network.strategy == "none")
    throw usage_error("--verify-every cannot be used with --strategy none");
}

/// Refuses what one rank cannot do for all.
void check_part(const train_options& options, const program_bundle& bundle,
                const rank_part& part) {
  const auto names = split_names(options.fetch);
  if (part.has_others() && persistable(bundle, names) != names)
    throw usage_error("--fetch: with several ranks, only persistable variables "
                      "can be fetched, because each rank has only its own "
                      "samples");
}

/// One rank's run of the command.
class training_run {
public:
  /// Reads the program and opens all files.
  training_run(const train_options& options, rank_part& part);
  /// Trains and saves. Returns the exit code.
  int run();

private:
  void start_system();
  void choose_devices(const stop_request& stop);
  void train_with(held_out_test& held_out, const stop_request& stop);
  void save(const held_out_test& held_out);

  const train_options& options_;
  rank_part& part_;
  arena host_{make_host_memory_source()};
  const program_bundle bundle_;
  executor_options wanted_;
  caf::actor_system_config config_;
  std::optional<caf::actor_system> system_;
  std::unique_ptr<batch_source> source_;
  std::unique_ptr<batch_source> held_out_samples_;
  std::uint64_t steps_ = 0;
  std::optional<run_snapshots> snapshots_;
  std::optional<run_outputs> outputs_;
  std::shared_ptr<scope> parameters_;
  std::optional<run_profile> profile_;
  training_report report_;
};

training_run::training_run(const train_options& options, rank_part& part)
  : options_(options), part_(part),
    bundle_(load_program(options.network.program, options.network.loss)) {
  require_loss(bundle_);
  if (options.data.feeds.empty())
    refuse_custom_gradient(options.network, bundle_);
  check_verification(options);
  check_part(options, bundle_, part);
  wanted_ = make_train_options(options, bundle_);
  if (wanted_.threads == 0)
    wanted_.threads = part.default_threads();
  require_fetches(bundle_, wanted_.fetches);
  wanted_.hooks.device_instances = make_devices(wanted_.devices);
  require_ops(bundle_, wanted_.devices);
  if (!options.dry_run)
    prepare_backends(wanted_.devices, worker_count(wanted_.threads));
  start_system();
  source_ = make_source(options, bundle_, host_,
                        part.share_of(wanted_.devices.size()), *system_);
  held_out_samples_ = open_held_out(options, bundle_, host_);
  steps_ = count_steps(options, *source_); // throws if there are too many
  wanted_.lowering.batch = source_->batch_samples(0);
  snapshots_.emplace(options, bundle_, *source_, part);
  outputs_.emplace(options, bundle_, snapshots_->start().steps);
  parameters_ = make_parameters(options, bundle_, host_);
}

void training_run::start_system() {
  configure(config_, wanted_.threads);
  if (part_.has_others())
    config_.load<caf::io::middleman>();
  system_.emplace(config_);
  wanted_.system = &*system_;
}

void training_run::choose_devices(const stop_request& stop) {
  if (snapshots_->has_devices() && is_automatic(options_.network)
      && !part_.has_others()) {
    snapshots_->choose_devices(wanted_);
  } else if (part_.has_others()) {
    part_.spread(wanted_);
    // Processes share no parameters.
    if (!options_.network.strategy.empty())
      wanted_.strategy = strategy_for(options_.network, wanted_.devices);
  } else if (is_automatic(options_.network) && !options_.deterministic) {
    choose_cpu_devices(
      wanted_, options_.network, bundle_, source_->batch(0, 0),
      {.begins =
         [] { progress{}.note("trying one CPU device and one per worker"); },
       .stop = &stop});
  } else {
    wanted_.strategy = strategy_for(options_.network, wanted_.devices);
  }
}

int training_run::run() {
  const stop_request stop; // before this, a signal ends the process
  std::optional<stop_watch> ends_late_stop(std::in_place, stop,
                                           end_if_it_takes(patience_for_stops));
  choose_devices(stop);
  if (stop.stopped())
    return tell_stop(0, steps_, part_);
  snapshots_->restore(wanted_.devices.size() / part_.size(), *parameters_);
  wanted_.parameters = parameters_;
  held_out_test held_out(bundle_, held_out_samples_.get(), wanted_, part_,
                         stop);
  if (options_.profile)
    profile_.emplace(steps_, wanted_);
  train_with(held_out, stop);
  ends_late_stop.reset(); // from here on, results are saved
  if (report_.stopped)
    return tell_stop(snapshots_->start().steps + report_.steps, steps_, part_);
  if (profile_)
    profile_->print(bundle_.main, source_->batch_samples(0), options_.json);
  if (part_.is_first())
    save(held_out);
  else
    snapshots_->require_written();
  return 0;
}

void training_run::train_with(held_out_test& held_out,
                              const stop_request& stop) {
  executor exe(bundle_.main, wanted_);
  if (profile_)
    profile_->begin(exe);
  auto shown =
    part_.is_first() ? progress{} : progress{progress::form::nothing};
  describe_graph(exe, options_, wanted_.strategy, part_, shown);
  tell_of_start(options_, shown);
  snapshots_->begin(exe, wanted_, shown);
  const stop_watch watch(stop, [&] { exe.cancel(); });
  report_ = train(exe, *source_, options_, *snapshots_, *outputs_,
                  profile_ ? &*profile_ : nullptr, stop, held_out, shown);
  if (report_.stopped)
    return;
  exe.synchronize_parameters();
  if (part_.is_first())
    print_summary(report_, exe.stats(), options_.json);
  if (!options_.dry_run) // a dry run computes no loss
    warn_of_loss(report_, shown);
}

void training_run::save(const held_out_test& held_out) {
  if (!options_.save.empty()) {
    refresh_coalesced(bundle_, *parameters_);
    save_program(bundle_, *parameters_, options_.save);
  }
  run_after_saving(options_, [&] {
    outputs_->finish(bundle_, report_.history, options_, host_);
    if (held_out.has_samples())
      print_held_out(held_out.at_end(*parameters_), options_.json);
    outputs_->require_metrics();
    snapshots_->require_written();
  });
}

} // namespace

executor_options make_train_options(const train_options& options,
                                    const program_bundle& bundle) {
  executor_options made = make_executor_options(options.network);
  made.loss = bundle.loss;
  made.fetches = split_names(options.fetch);
  made.seed = options.seed;
  made.hooks.check_nan = options.check_nan;
  made.hooks.dry_run = options.dry_run;
  return made;
}

std::int64_t samples_per_step(const train_options& options,
                              const program_bundle& bundle) {
  if (options.data.data.empty() && options.data.feeds.empty())
    return choose_batch(options.data, bundle);
  arena host{make_host_memory_source()};
  return open_source(options, bundle, host)->batch_samples(0);
}

int run_train(const train_options& options) {
  rank_part part;
  const auto own = part.is_first() ? options : without_files(options);
  check_places(own);
  return training_run{own, part}.run();
}

} // namespace troupe::apps
