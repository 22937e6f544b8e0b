// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/evaluation.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// Runs a step. If a stop was requested before or within it, throws
/// error(cancelled) with the number of steps that were done.
step_result run_step(executor& exe, const feed_map& feeds,
                     const std::vector<std::string>& fetches,
                     const std::function<bool()>& stop, std::uint64_t step,
                     std::uint64_t steps) {
  const auto stopped = [&] { return stop && stop(); };
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

executor_options evaluation_options(const training_program& program,
                                    executor_options given) {
  if (program.loss.empty())
    throw error(errc::not_found, "the program has no loss");
  given.loss = program.loss;
  given.fetches.clear();
  if (const auto answers = find_classifier(program.test))
    given.fetches.push_back(answers->scores);
  return given;
}

evaluation evaluation_of(const training_program& program, const feed_map& feeds,
                         const step_result& result) {
  evaluation found{result.loss, std::nullopt, 0};
  for (auto samples : result.samples)
    found.samples += samples;
  if (const auto answers = find_classifier(program.test))
    found.answers =
      count_hits(result.merged(answers->scores),
                 feeds.find(answers->label)->second, answers->ignored);
  return found;
}

evaluation evaluate(executor& exe, const training_program& program,
                    batch_source& source, std::uint64_t steps,
                    const std::function<bool()>& stop) {
  std::vector<std::string> fetches;
  if (const auto answers = find_classifier(program.test))
    fetches.push_back(answers->scores);
  evaluation total;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto index = step % source.steps_per_epoch();
    const feed_map feeds = source.batch(0, index);
    const step_result result = run_step(exe, feeds, fetches, stop, step, steps);
    const auto samples = source.batch_samples(index);
    const auto here = evaluation_of(program, feeds, result);
    total.loss += here.loss * static_cast<double>(samples);
    total.samples += samples;
    if (here.answers) {
      auto& sum = total.answers ? *total.answers : total.answers.emplace();
      sum.correct += here.answers->correct;
      sum.total += here.answers->total;
    }
  }
  total.loss /= static_cast<double>(total.samples);
  return total;
}

std::shared_ptr<scope> copy_parameters(const scope& parameters,
                                       const graph::program& program) {
  arena memory(make_host_memory_source()); // its blocks outlive it
  auto copies = std::make_shared<scope>();
  for (const auto& [name, declared] : program.main().vars)
    if (declared.persistable)
      if (const auto* var = parameters.find(name); var && var->is_tensor())
        copies->var(name).set(
          clone(parameters.to_host(var->as_tensor(), memory), memory));
  return copies;
}

} // namespace troupe
