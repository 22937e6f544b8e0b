// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/evaluation.hpp>

namespace troupe::apps {

evaluation evaluate(const program_bundle& bundle, executor_options options,
                    batch_source& source, std::uint64_t steps) {
  const auto answers = find_classifier(bundle.test);
  options.loss = require_loss(bundle);
  options.fetches.clear();
  if (answers)
    options.fetches.push_back(answers->scores);
  executor exe(bundle.test, options);

  evaluation total;
  if (answers)
    total.answers.emplace();
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto index = step % source.steps_per_epoch();
    const feed_map feeds = source.batch(0, index);
    const step_result result = exe.run(feeds, options.fetches);
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

} // namespace troupe::apps
