// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// How the samples of a batch fall on devices: shard sizes differ by at most
/// one, the larger ones first; devices may get none.
std::vector<step_info> split_batch(std::int64_t samples, std::size_t devices,
                                   step_id step, std::uint64_t seed);
/// The same over `shards.size()` devices, in the memory that is there.
void split_batch(std::int64_t samples, step_id step, std::uint64_t seed,
                 std::vector<step_info>& shards);

/// True if a feed of that name replaces the value of a persistable variable,
/// whole on every device (a learning rate), instead of being split.
bool feeds_persistable(const graph::block& declarations,
                       const std::string& name);

/// The feeds of a program.
struct needed_feeds {
  std::vector<std::string> names;
  std::vector<std::string> whole; ///< of these, by `graph::whole_feeds`

  needed_feeds() = default;
  needed_feeds(std::vector<std::string> needed,
               const graph::block& declarations);

  bool has(std::string_view name) const;
  bool is_whole(std::string_view name) const;
};

/// Checks the feeds of a step against the program's declarations and returns
/// the number of samples, the same for all feeds that are not whole: extent of
/// axis 0, or the outermost sequences of a feed that has levels; as many as
/// devices if there is no such feed. They are split over the devices by samples
/// (Paddle's SplitLoDTensor).
///
/// Throws error(not_found) for a missing or unknown feed, error(dtype_mismatch
/// | shape_mismatch) naming variable, expected and actual, and
/// error(invalid_argument) for an empty batch.
std::int64_t check_feeds(const feed_map& feeds, const needed_feeds& needed,
                         const graph::block& declarations, std::size_t devices);

/// What a device fetched.
struct fetched_value {
  std::string_view name;
  std::size_t device;
  tensor value; ///< without memory if there is none
};
/// The step_result of what devices fetched.
step_result gather(step_id step, const std::string& loss,
                   const std::vector<step_info>& shards,
                   const std::vector<fetched_value>& values,
                   const std::vector<std::string>& wanted);
/// The same into a result that an earlier step may have filled, in the memory
/// that it has.
void gather(step_id step, const std::string& loss,
            const std::vector<step_info>& shards,
            const std::vector<fetched_value>& values,
            const std::vector<std::string>& wanted, step_result& result);

} // namespace troupe::actors
