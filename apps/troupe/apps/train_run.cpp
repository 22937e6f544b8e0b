// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/train_run.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/apps/data/dataset.hpp>
#include <troupe/apps/data/prefetching_source.hpp>
#include <troupe/apps/device_choice.hpp>
#include <troupe/apps/evaluation.hpp>
#include <troupe/apps/profile/run_profile.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/results/fetch_file.hpp>
#include <troupe/apps/results/output_places.hpp>
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

/// printf into a string, for lines of at most 200 characters.
template <class... Values>
std::string line(const char* format, Values... values) {
  std::array<char, 201> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

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
                                          arena& memory) {
  const data_options& data = options.data;
  if (!data.feeds.empty())
    return open_feeds(data, wanted_feeds(options, bundle), memory);
  const std::int64_t batch = choose_batch(data, bundle);
  if (!data.data.empty())
    return make_dataset_source(
      load_dataset(data.data, bundle.feeds, dataset_part::train, memory),
      {.batch = batch, .seed = options.seed}, memory);
  if (!data.synthetic && !options.dry_run)
    throw usage_error("train needs --data, --feeds or --synthetic");
  return make_synthetic_source(bundle.feeds, batch, options.seed, memory);
}

/// Prefetches batches, except synthetic ones, which are generated only once.
std::unique_ptr<batch_source> make_source(const train_options& options,
                                          const program_bundle& bundle,
                                          arena& memory,
                                          caf::actor_system& system) {
  auto source = open_source(options, bundle, memory);
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

/// Those of `names` that are persistable: they have the same value on all
/// devices.
std::vector<std::string> persistable(const program_bundle& bundle,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (const auto* var = bundle.main.main().find_var(name);
        var && var->persistable)
      found.push_back(name);
  return found;
}

/// Refuses a variable that the file cannot hold before the training; otherwise
/// the error would come after the last step.
void require_storable(const program_bundle& bundle, const std::string& name,
                      const std::string& file) {
  const auto* var = bundle.main.main().find_var(name);
  try {
    require_npz_array(name, var ? var->type : dtype::float32);
  } catch (const error& failure) {
    throw error(failure.code(), file + ": " + failure.message(),
                {.variable = name});
  }
}

/// All files that a run writes. They are opened before the first step, so that
/// a path that cannot be written is reported before the training.
class run_outputs {
public:
  run_outputs(const train_options& options, const program_bundle& bundle) {
    if (!options.save.empty())
      graph::require_program_folder_place(options.save);
    if (!options.metrics.empty())
      metrics_.emplace(options.metrics);
    if (!options.loss_curve.empty())
      curve_.emplace(options.loss_curve);
    const auto names = split_names(options.fetch);
    for (const auto& name : names)
      require_storable(bundle, name, options.fetch_out);
    if (!names.empty())
      fetched_.emplace(options.fetch_out, names, persistable(bundle, names));
    if (fetched_)
      atomic_file{options.fetch_out}; // made and removed, to check the path
  }

  /// Adds a line of metrics. If it cannot be written, training continues
  /// without further lines, and `require_metrics` throws at the end.
  void add(const step_metrics& metrics, progress& shown) {
    if (!metrics_ || lost_)
      return;
    try {
      metrics_->write(metrics);
    } catch (const error& failure) {
      lost_ = failure.message() + "; lines from step "
              + std::to_string(metrics.step) + " on are missing";
      shown.note("warning: " + *lost_);
    }
  }

  /// Throws, at the end, if metrics could not be written.
  void require_metrics() const {
    if (lost_)
      throw error(errc::io_failure, *lost_);
  }

  void add(const step_result& result) {
    if (fetched_)
      fetched_->add(result);
  }

  void finish(const program_bundle& bundle, const loss_history& history,
              const train_options& options, arena& memory) {
    if (curve_) {
      curve_->write(draw_loss_curve(history, bundle.name + " on "
                                               + options.network.devices));
      curve_->commit();
    }
    if (fetched_)
      fetched_->write(memory);
  }

private:
  std::optional<metrics_file> metrics_;
  std::optional<std::string> lost_; // the reason, if lines are missing
  std::optional<atomic_file> curve_;
  std::optional<fetch_file> fetched_;
};

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
                    graph::merge_strategy strategy, progress& shown) {
  const executor_stats stats = exe.stats();
  const auto count = exe.graph().devices.size();
  auto on = describe_devices(options.network, count);
  if (count > 1)
    on += ", " + std::string(graph::to_string(strategy));
  shown.note(line("%s on %s: %zu op actors, %zu variable actors, %zu stream "
                  "actors, %zu messages per step",
                  options.network.program.c_str(), on.c_str(), stats.op_actors,
                  stats.variable_actors, stats.stream_actors,
                  stats.messages_per_step));
}

/// Evaluates each epoch of a training on held-out samples.
class held_out_test {
public:
  /// @param samples null: there are none
  held_out_test(const program_bundle& bundle, batch_source* samples,
                const executor_options& training, const stop_request& stop)
    : bundle_(bundle), samples_(samples), stop_(stop) {
    one_device_.system = training.system;
    one_device_.devices = {training.devices.front()};
  }

  bool has_samples() const { return samples_ != nullptr; }

  /// Loss and accuracy with the current parameters, as text for the line of an
  /// epoch. A failure does not end the training: it is reported once here, and
  /// `at_end` throws if it happens again.
  std::string tell(executor& exe, progress& shown) {
    last_.reset();
    if (!samples_ || failed_)
      return "";
    try {
      exe.synchronize_parameters();
      last_ = run(exe.parameters());
    } catch (const error& failure) {
      if (failure.code() == errc::cancelled && stop_.stopped())
        throw;
      failed_ = true;
      shown.note("warning: no held-out figures of epochs: "
                 + failure.message());
      return "";
    }
    return line("  held-out loss %.4f, accuracy %.4f", last_->loss,
                last_->answers->accuracy());
  }

  /// Correct answers with the parameters after the last step.
  hits at_end(const scope& parameters) const {
    return *(last_ ? *last_ : run(parameters)).answers;
  }

private:
  evaluation run(const scope& parameters) const {
    try {
      return evaluate_copies(bundle_, one_device_, *samples_, parameters,
                             stop_);
    } catch (const error& failure) {
      if (failure.code() != errc::cancelled || !stop_.stopped())
        throw;
      // the original error counts the evaluation's steps
      throw error(errc::cancelled,
                  "stopped in the evaluation on held-out samples");
    }
  }

  const program_bundle& bundle_;
  batch_source* samples_;
  const stop_request& stop_;
  executor_options one_device_;
  bool failed_ = false;
  std::optional<evaluation> last_;
};

/// Notes that steps count from the first: saved parameters do not record how
/// many steps the earlier run took.
void tell_of_start(const train_options& options, progress& shown) {
  if (!options.params.empty())
    shown.note("parameters from " + options.params
               + "; steps and epochs of this run count from the first");
}

training_report train(executor& exe, batch_source& source,
                      const train_options& options, run_outputs& outputs,
                      run_profile* profile, const stop_request& stop,
                      held_out_test& held_out, progress& shown) {
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
    shown.note(line("epoch %llu/%llu  loss %.4f  %.0f samples/s", ull{epoch},
                    ull{epochs}, loss, rate)
               + held_out.tell(exe, shown));
  };
  observer.rest_between_epochs = held_out.has_samples();
  return run_training(exe, source, steps, executor_options{}.steps_in_flight,
                      split_names(options.fetch), observer);
}

void print_summary(const training_report& report, const executor_stats& stats,
                   bool json) {
  if (!json) {
    std::fprintf(stderr, "%s\n",
                 line("trained %llu step%s in %.2f s: %.0f samples/s, %llu "
                      "messages",
                      ull{report.steps}, report.steps == 1 ? "" : "s",
                      report.seconds, report.samples_per_s(),
                      ull{stats.messages})
                   .c_str());
    return;
  }
  nlohmann::ordered_json result;
  result["steps"] = report.steps;
  result["loss"] = report.history.steps.back();
  result["seconds"] = report.seconds;
  result["samples_per_s"] = report.samples_per_s();
  result["op_actors"] = stats.op_actors;
  result["variable_actors"] = stats.variable_actors;
  result["messages"] = stats.messages;
  std::printf("%s\n", result.dump().c_str());
}

/// Returns the exit code.
int tell_stop(std::uint64_t steps, std::uint64_t of_steps) {
  std::fprintf(stderr, "troupe: stopped after step %llu of %llu\n", ull{steps},
               ull{of_steps});
  return 1;
}

/// Warns if a loss was not finite: the training itself continues to its end.
void warn_of_loss(const training_report& report, progress& shown) {
  const auto& losses = report.history.steps;
  const auto lost = std::ranges::find_if(
    losses, [](double loss) { return !std::isfinite(loss); });
  if (lost != losses.end())
    shown.note(line("warning: the loss of step %lld is not finite; "
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
  check_places(options);
  arena host(make_host_memory_source());
  const program_bundle bundle =
    load_program(options.network.program, options.network.loss);
  require_loss(bundle);
  if (options.data.feeds.empty())
    refuse_custom_gradient(options.network, bundle);
  executor_options wanted = make_train_options(options, bundle);
  require_fetches(bundle, wanted.fetches);
  wanted.hooks.device_instances = make_devices(wanted.devices);
  require_ops(bundle, wanted.devices);
  if (!options.dry_run)
    prepare_backends(wanted.devices, worker_count(wanted.threads));
  caf::actor_system_config config;
  configure(config, options.network.threads);
  caf::actor_system system(config);
  wanted.system = &system;
  auto source = make_source(options, bundle, host, system);
  const auto held_out_samples = open_held_out(options, bundle, host);
  count_steps(options, *source); // throws if there are too many
  wanted.lowering.batch = source->batch_samples(0);
  run_outputs outputs(options, bundle);
  const auto parameters = make_parameters(options, bundle, host);
  const stop_request stop; // before this, a signal ends the process
  std::optional<stop_watch> ends_late_stop(std::in_place, stop,
                                           end_if_it_takes(patience_for_stops));
  if (is_automatic(options.network) && !options.deterministic) {
    choose_cpu_devices(
      wanted, options.network, bundle, source->batch(0, 0),
      {.begins =
         [] { progress{}.note("trying one CPU device and one per worker"); },
       .stop = &stop});
    if (stop.stopped())
      return tell_stop(0, count_steps(options, *source));
  } else {
    wanted.strategy = strategy_for(options.network, wanted.devices);
  }
  wanted.parameters = parameters;
  held_out_test held_out(bundle, held_out_samples.get(), wanted, stop);
  training_report report;
  std::optional<run_profile> profile;
  if (options.profile)
    profile.emplace(count_steps(options, *source), wanted);
  {
    executor exe(bundle.main, wanted);
    if (profile)
      profile->begin(exe);
    progress shown;
    describe_graph(exe, options, wanted.strategy, shown);
    tell_of_start(options, shown);
    const stop_watch watch(stop, [&] { exe.cancel(); });
    report = train(exe, *source, options, outputs,
                   profile ? &*profile : nullptr, stop, held_out, shown);
    if (!report.stopped) {
      exe.synchronize_parameters();
      print_summary(report, exe.stats(), options.json);
      if (!options.dry_run) // a dry run computes no loss
        warn_of_loss(report, shown);
    }
  }
  ends_late_stop.reset(); // from here on, results are saved
  if (report.stopped)
    return tell_stop(report.steps, count_steps(options, *source));
  if (profile)
    profile->print(bundle.main, source->batch_samples(0), options.json);
  if (!options.save.empty()) {
    refresh_coalesced(bundle, *parameters);
    save_program(bundle, *parameters, options.save);
  }
  run_after_saving(options, [&] {
    outputs.finish(bundle, report.history, options, host);
    if (held_out.has_samples())
      print_held_out(held_out.at_end(*parameters), options.json);
    outputs.require_metrics();
  });
  return 0;
}

} // namespace troupe::apps
