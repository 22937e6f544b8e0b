// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// Splits the samples of a batch over devices. Shard sizes differ by at most
/// one, and the larger shards come first. Devices may get no samples.
std::vector<step_info> split_batch(std::int64_t samples, std::size_t devices,
                                   step_id step, std::uint64_t seed);
/// The same over `shards.size()` devices, reusing the memory of `shards`.
void split_batch(std::int64_t samples, step_id step, std::uint64_t seed,
                 std::vector<step_info>& shards);

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

/// Checks the feeds of a step against the program's declarations and returns
/// the number of samples. It must be the same for all feeds that are split: the
/// extent of axis 0, or the number of outermost sequences if the feed has
/// levels. If no feed is split, it is the number of devices. Feeds are split
/// over the devices by samples (Paddle's SplitLoDTensor).
///
/// Throws error(not_found) for a missing or unknown feed, error(dtype_mismatch
/// | shape_mismatch) naming variable, expected and actual, and
/// error(invalid_argument) for an empty batch.
std::int64_t check_feeds(const feed_map& feeds, const needed_feeds& needed,
                         const graph::block& declarations, std::size_t devices);

/// A value that a device fetched.
struct fetched_value {
  std::string_view name;
  std::size_t device;
  tensor value; ///< without memory if there is no value
};
/// Makes a step_result from the devices' fetched values.
step_result gather(step_id step, const std::string& loss,
                   const std::vector<step_info>& shards,
                   const std::vector<fetched_value>& values,
                   const std::vector<std::string>& wanted);
/// The same, reusing the memory of a result that an earlier step may have
/// filled.
void gather(step_id step, const std::string& loss,
            const std::vector<step_info>& shards,
            const std::vector<fetched_value>& values,
            const std::vector<std::string>& wanted, step_result& result);

} // namespace troupe::actors
