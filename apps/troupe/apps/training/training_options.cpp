// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/training_options.hpp>

#include <troupe/apps/data/training_source.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>

namespace troupe::apps {

executor_options make_train_options(const train_options& options,
                                    const program_bundle& bundle) {
  executor_options made = make_executor_options(options.network);
  made.trace.emplace(); // neither trials nor tests are traced
  made.flight_recorder.level = parse_trace_level(options.flight_recorder);
  made.loss = bundle.loss;
  made.accumulate = options.accumulate;
  made.fetches = split_names(options.fetch);
  made.seed = options.seed;
  made.sums_in_order = options.deterministic;
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

std::shared_ptr<scope> make_parameters(const train_options& options,
                                       const program_bundle& bundle,
                                       arena& memory) {
  auto parameters = std::make_shared<scope>();
  run_startup(bundle.startup, *parameters, options.seed);
  if (!options.params.empty())
    load_parameters(bundle.main, options.params, *parameters, memory);
  return parameters;
}

} // namespace troupe::apps
