// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/elastic_checks.hpp>

#include <troupe/apps/usage_error.hpp>

namespace troupe::apps {

void check_elastic(const train_options& options) {
  if (!options.place.empty())
    throw usage_error("--place cannot be used in an elastic job, where a rank "
                      "that is named may end");
  const auto& strategy = options.network.strategy;
  if (strategy == "reduce" && options.snapshot_every == 0)
    throw usage_error("--strategy reduce in an elastic job needs --snapshots "
                      "and --snapshot-every: optimizer state that ends with "
                      "its rank is read from a snapshot");
  if (!strategy.empty() && strategy != "all_reduce" && strategy != "reduce")
    throw usage_error("--strategy " + strategy
                      + " cannot be used in an elastic job: each rank must "
                        "have all parameters and optimizer state");
}

void require_trusted_network(const train_options& options,
                             const rank_part& part) {
  if (part.is_on_several_hosts() && options.ranks.data_network.empty())
    throw usage_error("an elastic job on several hosts needs --data-network "
                      "trusted: parameters go over the network without "
                      "encryption");
}

} // namespace troupe::apps
