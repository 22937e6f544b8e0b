// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/snapshots/snapshot_request.hpp>

#include <troupe/apps/usage_error.hpp>
#include <troupe/training/snapshots/snapshot_folder.hpp>

namespace troupe::apps {

run_rank rank_of(const rank_part& part) {
  return {part.rank(), part.size()};
}

void tell_notes(run_snapshots& snapshots, progress& shown) {
  for (auto& note : snapshots.take_notes())
    shown.note(note);
}

snapshot_options requested_snapshots(const train_options& options,
                                     const rank_part& part) {
  if (options.snapshots.empty())
    return {};
  if (!options.resume.empty() && options.resume != "auto")
    throw usage_error("--resume: must be auto, not '" + options.resume + "'");
  snapshot_options wanted{.folder = options.snapshots,
                          .keep = options.keep,
                          .resume = !options.resume.empty(),
                          // A rank that comes late gets its state from others.
                          .joins_others = part.is_late(),
                          .run = part.job()};
  if (!wanted.resume && !wanted.joins_others
      && snapshot_folder{wanted.folder, part.rank(), part.size()}.has_any())
    throw usage_error("--snapshots " + options.snapshots
                      + " has snapshots of an earlier run: go on from them "
                        "with --resume auto, or use another folder");
  return wanted;
}

run_identity identity_of(const train_options& options,
                         const program_bundle& bundle,
                         const batch_source& source) {
  if (options.snapshots.empty())
    return {};
  return {hash_of(bundle.main), options.seed, source.batch_samples(0),
          source.steps_per_epoch(), options.accumulate};
}

} // namespace troupe::apps
