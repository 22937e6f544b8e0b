// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/evaluation.hpp>

#include <utility>

namespace troupe::apps {

evaluation evaluate(const program_bundle& bundle, executor_options options,
                    batch_source& source, std::uint64_t steps,
                    const stop_request& stop) {
  require_loss(bundle); // its error names the option
  executor exe(bundle.test, evaluation_options(bundle, std::move(options)));
  const stop_watch watch(stop, [&] { exe.cancel(); });
  return troupe::evaluate(exe, bundle, source, steps,
                          [&] { return stop.stopped(); });
}

evaluation evaluate_copies(const program_bundle& bundle,
                           executor_options options, batch_source& source,
                           const scope& parameters, const stop_request& stop) {
  options.parameters = copy_parameters(parameters, bundle.test);
  return evaluate(bundle, std::move(options), source, source.steps_per_epoch(),
                  stop);
}

} // namespace troupe::apps
