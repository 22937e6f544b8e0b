// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/snapshots/run_snapshots.hpp>

#include <troupe/base/error.hpp>

#include <utility>

namespace troupe {

run_snapshots::run_snapshots(const snapshot_options& options,
                             run_identity identity, run_rank rank)
  : options_(options), identity_(std::move(identity)), rank_(rank),
    memory_(make_host_memory_source()) {
  if (options.folder.empty())
    return;
  if (options.keep == 0)
    throw error(errc::invalid_argument, "no snapshots are to be kept");
  snapshot_folder folder{options.folder, rank.number, rank.ranks};
  folder.require_writable();
  claim_.emplace(options.folder, options.run);
  if (const auto& doubt = claim_->doubt())
    notes_.push_back("warning: " + *doubt);
  if (options.resume) {
    found_ = folder.newest(memory_, [this](const std::string& why) {
      notes_.push_back("warning: a snapshot cannot be read: " + why);
    });
    if (found_) {
      const auto name = folder.name_of(found_->position.steps);
      require_same_run(found_->identity, identity_, name);
      notes_.push_back("goes on from " + name);
    } else {
      notes_.push_back("no snapshot in " + options.folder.string()
                       + ": starts from the first step");
    }
  } else if (!options.joins_others && folder.has_any()) {
    throw error(errc::invalid_argument,
                options.folder.string()
                  + " has snapshots of an earlier run: go on from them, or use "
                    "another folder");
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
    restore_values(*found_, rank_, own_devices, parameters);
}

std::optional<run_position> run_snapshots::go_back(std::size_t own_devices,
                                                   scope& parameters) {
  const snapshot_folder folder{options_.folder, rank_.number, rank_.ranks};
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
  restore_values(*newest, rank_, own_devices, parameters);
  return newest->position;
}

void run_snapshots::begin_epoch(run_rank rank) {
  rank_ = rank;
  if (!writer_)
    return;
  writer_.reset(); // after the last write
  writer_.emplace(snapshot_folder{options_.folder, rank.number, rank.ranks},
                  options_.keep);
}

void run_snapshots::begin(const executor_options& options) {
  devices_ = {options.devices.size() / rank_.ranks, rank_.ranks,
              options.strategy, options.lowering.sync_batch_norm};
  if (found_) { // the scope has its values now
    found_->values.clear();
    found_->of_device.clear();
  }
}

void run_snapshots::take(executor& exe, const run_position& done,
                         snapshot_writer::listener written) {
  snapshot taken{identity_, done, devices_, {}, {}};
  copy_values(exe, exe.parameters(), rank_, memory_, taken);
  if (const auto why = writer_->take_failure(); why && !failure_) {
    failure_ = why;
    notes_.push_back("warning: a snapshot could not be written: " + *why);
  }
  writer_->write(std::move(taken), std::move(written));
}

void run_snapshots::require_written() {
  if (writer_)
    if (const auto why = writer_->take_failure(); why && !failure_)
      failure_ = why;
  if (failure_)
    throw error(errc::io_failure,
                "a snapshot could not be written: " + *failure_);
}

std::vector<std::string> run_snapshots::take_notes() {
  return std::exchange(notes_, {});
}

} // namespace troupe
