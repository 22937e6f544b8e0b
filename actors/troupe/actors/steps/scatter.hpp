// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/placement.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// Splits the samples of a batch over devices. Shard sizes differ by at most
/// one, and the larger shards come first. Devices may get no samples.
std::vector<step_info> split_batch(std::int64_t samples, std::size_t devices,
                                   step_id step, std::uint64_t seed);
/// The same over those of `shards.size()` devices that are in this process,
/// reusing the memory of `shards`. The shards of all others are empty.
/// `first_sample` and `batch_samples` count the samples of this process;
/// count_samples (tasks/batch_exchange.hpp) corrects them if there are others.
void split_batch(std::int64_t samples, step_id step, std::uint64_t seed,
                 const placement& where, std::vector<step_info>& shards);

/// True if a feed of that name is not split but replaces the value of a
/// persistable variable on every device, such as a learning rate.
bool feeds_persistable(const graph::block& declarations,
                       const std::string& name);

/// The feeds of a program.
struct needed_feeds {
  std::vector<std::string> names;
  /// feeds that are not split, see `graph::whole_feeds`
  std::vector<std::string> whole;

  needed_feeds() = default;
  needed_feeds(std::vector<std::string> needed,
               const graph::block& declarations);

  bool has(std::string_view name) const;
  bool is_whole(std::string_view name) const;
};

/// Checks a value against the declaration of the variable that it is fed to.
/// Throws as `check_feeds` does.
void check_feed(const std::string& name, const tensor& fed,
                const graph::var_desc& declared);

/// Checks the feeds of a step against the program's declarations and returns
/// the number of samples. It must be the same for all feeds that are split: the
/// extent of axis 0, or the number of outermost sequences if the feed has
/// levels. If no feed is split, it is the number of devices. Feeds are split
/// over the devices by samples (Paddle's SplitLoDTensor).
///
/// @param may_be_empty accept no samples: feeds without samples, or none of
///   those that are split
///
/// Throws error(not_found) for a missing or unknown feed, error(dtype_mismatch
/// | shape_mismatch) naming variable, expected and actual, and
/// error(invalid_argument) for an empty batch.
std::int64_t check_feeds(const feed_map& feeds, const needed_feeds& needed,
                         const graph::block& declarations, std::size_t devices,
                         bool may_be_empty = false);

/// The samples of a batch that belong to the shards of this process's devices,
/// in the order of devices. Feeds that are not split are whole. If there are no
/// such samples, feeds that are split are left out. The result may share the
/// batch's memory.
feed_map select_samples(const feed_map& batch, const needed_feeds& needed,
                        const graph::block& declarations,
                        const std::vector<step_info>& shards,
                        const placement& where);

/// The parts one after the other along axis 0, with their levels if all have
/// some. Scalars become a vector. The parts are plain, in host memory, of one
/// dtype, and differ only in axis 0. There is at least one.
tensor joined(std::span<const tensor* const> parts, arena& memory);

/// The mean of a loss's values; NaN unless it is float32 or float64. The value
/// is in host memory.
double mean_of(const tensor& loss);

/// A value that a device fetched.
struct fetched_value {
  std::string_view name;
  std::size_t device;
  tensor value; ///< without memory if there is no value
};
/// Number of samples by device.
std::vector<std::int64_t> samples_of(const std::vector<step_info>& shards);

/// What is known of a step that has ended, by device.
struct step_facts {
  step_id step = 0;
  std::span<const std::int64_t> samples;
  /// As gather_losses has set them; empty: they are among the fetched values.
  std::span<const double> losses = {};
};
/// Makes a step_result from the devices' fetched values.
/// @param loss its name; empty: the program has none
step_result gather(const step_facts& facts, const std::string& loss,
                   const std::vector<fetched_value>& values,
                   const std::vector<std::string>& wanted);
/// The same, reusing the memory of a result that an earlier step may have
/// filled.
void gather(const step_facts& facts, const std::string& loss,
            const std::vector<fetched_value>& values,
            const std::vector<std::string>& wanted, step_result& result);

} // namespace troupe::actors
