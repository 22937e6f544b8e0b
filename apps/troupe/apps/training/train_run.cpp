// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/train_run.hpp>

#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/training/train_checks.hpp>
#include <troupe/apps/training/training_options.hpp>
#include <troupe/apps/training/training_run.hpp>

namespace troupe::apps {

int run_train(const train_options& options) {
  rank_part part;
  part.use_interface(options.ranks.interface);
  require_output_places(part.is_first() ? options : without_files(options));
  check_trace(options, part);
  const auto code = training_run{options, part}.run();
  if (code == 0)
    part.tell_all_done();
  return code;
}

} // namespace troupe::apps
