// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::inference {

/// The values of outputs by name.
using output_map = std::map<std::string, tensor, std::less<>>;

/// True if both can be parts of one batch: their extents are equal but for axis
/// 0, and both have or lack levels of sequences. Both have the feeds of one
/// program.
bool can_merge(const feed_map& a, const feed_map& b);

/// The parts one after the other along axis 0. A single part is not copied.
feed_map merged_feeds(std::span<const feed_map* const> parts, arena& memory);

/// The outputs of each part of a batch, on the memory of `result`.
/// @param samples of each part
std::vector<output_map> split_outputs(std::span<const std::int64_t> samples,
                                      const step_result& result,
                                      const std::vector<std::string>& outputs);

/// Throws error(shape_mismatch), naming the output, if axis 0 of one does not
/// count the samples of the batch.
void require_samples(const step_result& result,
                     const std::vector<std::string>& outputs,
                     std::int64_t samples);

} // namespace troupe::inference
