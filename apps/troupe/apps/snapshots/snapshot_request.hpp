// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/program_source.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/training/train_run.hpp>
#include <troupe/training/data/batch_source.hpp>
#include <troupe/training/snapshots/run_snapshots.hpp>

namespace troupe::apps {

/// What the command line says of snapshots. Throws usage_error if the folder
/// has snapshots and the run is not to go on from them.
snapshot_options requested_snapshots(const train_options& options,
                                     const rank_part& part);

/// What must be the same in the run that made the snapshots.
run_identity identity_of(const train_options& options,
                         const program_bundle& bundle,
                         const batch_source& source);

/// Shows what the user should know of the run's snapshots.
void tell_notes(run_snapshots& snapshots, progress& shown);

/// This process among those of the run.
run_rank rank_of(const rank_part& part);

} // namespace troupe::apps
