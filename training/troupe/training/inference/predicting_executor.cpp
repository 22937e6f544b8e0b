// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/predicting_executor.hpp>

#include <troupe/base/error.hpp>
#include <troupe/training/evaluation.hpp>
#include <troupe/training/inference/merged_batch.hpp>
#include <troupe/training/inference/request_queue.hpp>

#include <utility>
#include <vector>

namespace troupe::inference {

namespace {

executor_options with_parameters(const predictor_options& options,
                                 const graph::program& program,
                                 const parameter_set& from) {
  if (!from.values)
    throw error(errc::invalid_argument, "a message without parameters");
  auto chosen = options.executor;
  chosen.parameters = copy_parameters(*from.values, program);
  return chosen;
}

} // namespace

predicting_executor::predicting_executor(
  std::shared_ptr<const graph::program> program,
  const predictor_options& options, const request_queue& queue,
  const parameter_set& from)
  : steps_(from.steps),
    exe_(program, with_parameters(options, *program, from)) {
  if (options.example)
    run_example(options, queue);
}

void predicting_executor::run_example(const predictor_options& options,
                                      const request_queue& queue) {
  const auto samples = queue.check(options.example);
  run_copies(options, samples, 1);
  if (const auto most = options.max_batch / samples; most > 1)
    run_copies(options, samples, static_cast<std::size_t>(most));
}

/// Each step in flight has its own memory.
void predicting_executor::run_copies(const predictor_options& options,
                                     std::int64_t samples, std::size_t copies) {
  arena memory{make_host_memory_source()};
  const std::vector<const feed_map*> parts(copies, options.example.get());
  const auto feeds = merged_feeds(parts, memory);
  for (std::uint32_t i = 0; i < options.executor.steps_in_flight; ++i) {
    const auto result = exe_.run(feeds, options.outputs);
    if (options.max_batch > 1)
      require_samples(result, options.outputs,
                      samples * static_cast<std::int64_t>(copies));
  }
}

} // namespace troupe::inference
