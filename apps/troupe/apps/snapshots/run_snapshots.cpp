// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/snapshots/run_snapshots.hpp>

#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>

#include <utility>

namespace troupe::apps {

run_snapshots::run_snapshots(const train_options& options,
                             const program_bundle& bundle,
                             const batch_source& source, const rank_part& part)
  : options_(options), part_(part), memory_(make_host_memory_source()) {
  if (options.snapshots.empty())
    return;
  if (!options.resume.empty() && options.resume != "auto")
    throw usage_error("--resume: must be auto, not '" + options.resume + "'");
  identity_ = {hash_of(bundle.main), options.seed, source.batch_samples(0),
               source.steps_per_epoch(), options.accumulate};
  snapshot_folder folder{options.snapshots, part.rank(), part.size()};
  folder.require_writable();
  if (options.resume.empty()) {
    // A rank that comes late gets its state from the others.
    if (folder.has_any() && !part.is_late())
      throw usage_error("--snapshots " + options.snapshots
                        + " has snapshots of an earlier run: go on from them "
                          "with --resume auto, or use another folder");
  } else {
    found_ = folder.newest(memory_, [this](const std::string& why) {
      notes_.push_back("warning: a snapshot cannot be read: " + why);
    });
    if (found_) {
      const auto name = folder.name_of(found_->position.steps);
      require_same_run(found_->identity, identity_, name);
      notes_.push_back("goes on from " + name);
    } else {
      notes_.push_back("no snapshot in " + options.snapshots
                       + ": starts from the first step");
    }
  }
  writer_.emplace(std::move(folder), options.keep);
}

void run_snapshots::choose_devices(executor_options& options) const {
  const auto& d = found_->devices;
  options.hooks.device_instances.clear();
  options.devices =
    parse_devices("cpu:" + std::to_string(d.per_rank * d.ranks));
  options.strategy = d.strategy;
  options.lowering.sync_batch_norm = d.sync_batch_norm;
}

void run_snapshots::restore(std::size_t own_devices, scope& parameters) const {
  if (found_)
    restore_values(*found_, part_, own_devices, parameters);
}

std::optional<run_position> run_snapshots::go_back(std::size_t own_devices,
                                                   scope& parameters) {
  const snapshot_folder folder{options_.snapshots, part_.rank(), part_.size()};
  const auto newest = folder.newest(memory_, [this](const std::string& why) {
    notes_.push_back("warning: a snapshot cannot be read: " + why);
  });
  parameters.drop_replicas();
  if (!newest)
    return std::nullopt;
  const auto name = folder.name_of(newest->position.steps);
  require_same_run(newest->identity, identity_, name);
  notes_.push_back("optimizer state has ended with its rank: goes back to "
                   + name);
  restore_values(*newest, part_, own_devices, parameters);
  return newest->position;
}

void run_snapshots::begin_epoch() {
  if (!writer_)
    return;
  writer_.reset(); // after the last write
  writer_.emplace(
    snapshot_folder{options_.snapshots, part_.rank(), part_.size()},
    options_.keep);
}

void run_snapshots::begin(const executor_options& options, progress& shown) {
  for (auto& note : std::exchange(notes_, {}))
    shown.note(note);
  devices_ = {options.devices.size() / part_.size(), part_.size(),
              options.strategy, options.lowering.sync_batch_norm};
  if (found_) { // the scope has its values now
    found_->values.clear();
    found_->of_device.clear();
  }
}

void run_snapshots::take(executor& exe, const run_position& done,
                         progress& shown) {
  snapshot taken{identity_, done, devices_, {}, {}};
  copy_values(exe, exe.parameters(), part_, memory_, taken);
  if (const auto why = writer_->take_failure(); why && !failure_) {
    failure_ = why;
    shown.note("warning: a snapshot could not be written: " + *why);
  }
  writer_->write(std::move(taken));
}

void run_snapshots::require_written() {
  if (writer_)
    if (const auto why = writer_->take_failure(); why && !failure_)
      failure_ = why;
  if (failure_)
    throw error(errc::io_failure,
                "a snapshot could not be written: " + *failure_);
}

} // namespace troupe::apps
