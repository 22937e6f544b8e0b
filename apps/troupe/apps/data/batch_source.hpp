// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/data/feed_info.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace troupe::apps {

/// Samples in memory: a tensor per feed whose axis 0 counts them.
struct dataset {
  feed_map columns;
  std::int64_t samples = 0; ///< at least 1
};

/// Where a run gets its batches from. An epoch has a fixed number of steps.
/// Batches lie in the arena that the source was made with.
/// Thread rule: one thread.
class batch_source {
public:
  virtual ~batch_source() = default;

  virtual std::uint64_t steps_per_epoch() const = 0;
  /// Samples of the batch of step `index` of an epoch.
  virtual std::int64_t batch_samples(std::uint64_t index) const = 0;
  /// The batch itself. Asking epoch after epoch, step after step is cheap.
  virtual feed_map batch(std::uint64_t epoch, std::uint64_t index) = 0;
};

struct sampling {
  std::int64_t batch = 1; ///< samples per step; an epoch's last may be smaller
  std::uint64_t seed = 0;
  bool shuffle = true; ///< another order in each epoch
};

/// Batches of a dataset. Throws error(invalid_argument) on a batch below 1.
std::unique_ptr<batch_source>
make_dataset_source(dataset data, const sampling& options, arena& memory);

/// Batches of an .npz file: an array per feed with a leading axis of steps; for
/// feeds of sequences see docs/formats.md.
/// Throws error(bad_file | not_found | shape_mismatch | dtype_mismatch |
/// out_of_range) naming file, array, expected and actual.
std::unique_ptr<batch_source> make_npz_source(const std::filesystem::path& file,
                                              std::span<const feed_info> feeds,
                                              arena& memory);

/// Random batches of the feeds' shapes: floats in [0, 1), whole numbers below
/// their limit. An epoch is 8 steps, each the same in every epoch. Throws
/// error(invalid_argument) on a feed of whole numbers without a limit.
std::unique_ptr<batch_source>
make_synthetic_source(std::span<const feed_info> feeds, std::int64_t batch,
                      std::uint64_t seed, arena& memory);

/// Throws error(dtype_mismatch | shape_mismatch) unless `values`, whose axis 0
/// counts samples, is what `feed` wants, naming `file`, expected and actual.
void check_feed(const feed_info& feed, dtype type, const shape& dims,
                const std::string& file);

/// Throws error(out_of_range) unless all whole numbers of `values` lie in
/// [0, feed.below) or are the ignored one, with file, position in `values`,
/// value and limit.
void check_range(const feed_info& feed, const tensor& values,
                 const std::string& file);

} // namespace troupe::apps
