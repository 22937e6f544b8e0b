// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/evaluation.hpp>

#include <string>
#include <utility>

namespace troupe::apps {

namespace {

/// Copies of the test program's persistable tensors.
std::shared_ptr<scope> copies_of(const scope& parameters,
                                 const graph::program& test) {
  arena memory(make_host_memory_source()); // its blocks outlive it
  auto copies = std::make_shared<scope>();
  for (const auto& [name, declared] : test.main().vars)
    if (declared.persistable)
      if (const auto* var = parameters.find(name); var && var->is_tensor())
        copies->var(name).set(
          clone(parameters.to_host(var->as_tensor(), memory), memory));
  return copies;
}

/// Runs a step. If `stop` was requested before or within it, throws
/// error(cancelled) with the number of steps that were done.
step_result run_step(executor& exe, const feed_map& feeds,
                     const std::vector<std::string>& fetches,
                     const stop_request* stop, std::uint64_t step,
                     std::uint64_t steps) {
  const auto stopped = [&] { return stop && stop->stopped(); };
  try {
    if (!stopped())
      return exe.run(feeds, fetches);
  } catch (const error& failure) {
    if (failure.code() != errc::cancelled || !stopped())
      throw;
  }
  throw error(errc::cancelled, "stopped after step " + std::to_string(step)
                                 + " of " + std::to_string(steps));
}

} // namespace

evaluation evaluate(const program_bundle& bundle, executor_options options,
                    batch_source& source, std::uint64_t steps,
                    const stop_request* stop) {
  const auto answers = find_classifier(bundle.test);
  options.loss = require_loss(bundle);
  options.fetches.clear();
  if (answers)
    options.fetches.push_back(answers->scores);
  executor exe(bundle.test, options);
  std::optional<stop_watch> watch;
  if (stop)
    watch.emplace(*stop, [&] { exe.cancel(); });

  evaluation total;
  if (answers)
    total.answers.emplace();
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto index = step % source.steps_per_epoch();
    const feed_map feeds = source.batch(0, index);
    const step_result result =
      run_step(exe, feeds, options.fetches, stop, step, steps);
    const auto samples = source.batch_samples(index);
    total.loss += result.loss * static_cast<double>(samples);
    total.samples += samples;
    if (answers) {
      const hits found =
        count_hits(result.merged(answers->scores),
                   feeds.find(answers->label)->second, answers->ignored);
      total.answers->correct += found.correct;
      total.answers->total += found.total;
    }
  }
  total.loss /= static_cast<double>(total.samples);
  return total;
}

evaluation evaluate_copies(const program_bundle& bundle,
                           executor_options options, batch_source& source,
                           const scope& parameters, const stop_request& stop) {
  options.parameters = copies_of(parameters, bundle.test);
  return evaluate(bundle, std::move(options), source, source.steps_per_epoch(),
                  &stop);
}

} // namespace troupe::apps
