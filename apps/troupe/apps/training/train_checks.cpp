// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/train_checks.hpp>

#include <troupe/apps/elastic/elastic_checks.hpp>
#include <troupe/apps/results/run_outputs.hpp>
#include <troupe/apps/results/run_trace.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/trace_writer.hpp>

#include <cstdlib>
#include <string>
#include <utility>

namespace troupe::apps {

/// With `--strategy none`, devices do not agree on parameters.
void check_verification(const train_options& options) {
  if (options.verify_every > 0 && options.network.strategy == "none")
    throw usage_error("--verify-every cannot be used with --strategy none");
}

void check_trace(const train_options& options, const rank_part& part) {
  const auto file = trace_of(options, part).file;
  if (!file.empty())
    trace::require_trace_place(trace_file_of(file, part.rank()));
}

namespace {

void check_rank_options(const rank_options& given, const rank_part& part) {
  if (part.is_of_job())
    return;
  for (const auto& [name, is_given] :
       {std::pair{"--comm", given.engine != rank_options{}.engine},
        std::pair{"--data-network", !given.data_network.empty()},
        std::pair{"--interface", !given.interface.empty()}})
    if (is_given)
      throw usage_error(std::string{name}
                        + ": this process is no rank of a job; troupe launch, "
                          "mpirun, srun and torchrun start ranks");
}

} // namespace

void tell_of_unused_range(const rank_part& part, progress& shown) {
  const auto* range = std::getenv("TROUPE_ELASTIC");
  if (range && *range && !part.is_of_job())
    shown.note("warning: TROUPE_ELASTIC=" + one_line(range)
               + " has no effect: no launcher has started this process as a "
                 "rank of a job");
}

void check_part(const train_options& options, const program_bundle& bundle,
                const rank_part& part) {
  check_rank_options(options.ranks, part);
  if (part.is_elastic())
    check_elastic(options);
  const auto names = split_names(options.fetch);
  if (part.has_others() && persistable(bundle, names) != names)
    throw usage_error("--fetch: with several ranks, only persistable variables "
                      "can be fetched, because each rank has only its own "
                      "samples");
}

} // namespace troupe::apps
