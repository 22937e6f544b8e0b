// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/training/train_run.hpp>

namespace troupe::apps {

/// Throws usage_error unless ranks of an elastic job can go on with the options
/// when one of them has ended. With the strategy `reduce`, each has only a part
/// of the optimizer state: there must be snapshots.
void check_elastic(const train_options& options);

/// Throws usage_error if the ranks are on several hosts whose network is not
/// said to be trusted. The executor requires this of each run, but the ranks of
/// an elastic job exchange their state before.
void require_trusted_network(const train_options& options,
                             const rank_part& part);

} // namespace troupe::apps
