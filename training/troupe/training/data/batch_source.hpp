// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/training/data/batch_share.hpp>
#include <troupe/training/data/feed_info.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace troupe {

/// Samples in memory: one tensor per feed. Axis 0 counts samples.
struct dataset {
  feed_map columns;
  std::int64_t samples = 0; ///< at least 1
};

/// The source of a run's batches, or of this process's share of each. An epoch
/// has a fixed number of steps. Batches are in the arena that the source was
/// made with.
/// Thread rule: one thread.
class batch_source {
public:
  virtual ~batch_source() = default;

  /// Number of batches of an epoch, at least 1.
  virtual std::uint64_t steps_per_epoch() const = 0;
  /// Number of samples of the whole batch of step `index` of an epoch.
  virtual std::int64_t batch_samples(std::uint64_t index) const = 0;
  /// The batch, or the share of it. If the share has no samples, feeds that are
  /// split are left out. Fast if batches are requested in the order of steps
  /// and epochs.
  virtual feed_map batch(std::uint64_t epoch, std::uint64_t index) = 0;
  /// True if there is no further batch: a run then ends before its last step.
  /// May wait for the next batch.
  virtual bool has_ended() { return false; }
};

/// How a dataset is cut into batches.
struct sampling {
  /// Samples per step. The last step of an epoch may have fewer.
  std::int64_t batch = 1;
  std::uint64_t seed = 0;
  bool shuffle = true; ///< a different order in each epoch
  batch_share share = {};
};

/// Batches of a dataset. Throws error(invalid_argument) if `batch` is below 1.
std::unique_ptr<batch_source>
make_dataset_source(dataset data, const sampling& options, arena& memory);

/// Batches of an .npz file: an array per feed with a leading axis of steps; for
/// feeds of sequences see docs/formats.md.
/// Throws error(bad_file | not_found | shape_mismatch | dtype_mismatch |
/// out_of_range) naming file, array, expected and actual.
std::unique_ptr<batch_source> make_npz_source(const std::filesystem::path& file,
                                              std::span<const feed_info> feeds,
                                              arena& memory,
                                              batch_share share = {});

/// Random batches with the feeds' shapes: floats in [0, 1), whole numbers below
/// their limit. An epoch has 8 steps; all epochs are the same. Throws
/// error(invalid_argument) for a feed of whole numbers without a limit.
std::unique_ptr<batch_source>
make_synthetic_source(std::span<const feed_info> feeds, std::int64_t batch,
                      std::uint64_t seed, arena& memory,
                      batch_share share = {});

/// Throws error(dtype_mismatch | shape_mismatch) unless `type` and `dims`,
/// whose axis 0 counts samples, are what `feed` needs. The error names `file`,
/// expected and actual.
void check_feed(const feed_info& feed, dtype type, const shape& dims,
                const std::string& file);

/// Throws error(out_of_range) unless all whole numbers of `values` are in
/// [0, feed.below) or equal the ignored number. The error names file, position
/// in `values`, value and limit.
void check_range(const feed_info& feed, const tensor& values,
                 const std::string& file);

} // namespace troupe
