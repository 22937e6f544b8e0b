// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/base/random.hpp>
#include <troupe/graph/models.hpp>

#include <cstdint>

namespace troupe::test {

/// Random feeds of `samples` samples.
inline feed_map feeds_of(const graph::model& net, std::int64_t samples) {
  static arena memory{make_host_memory_source()};
  splitmix64 draw{7};
  feed_map feeds;
  for (auto& feed : net.feeds) {
    auto dims = feed.dims;
    if (dims[0] == -1)
      dims[0] = samples;
    auto value = tensor::make(memory, dims, feed.type);
    if (feed.type == dtype::float32)
      for (auto& x : value.values<float>())
        x = static_cast<float>(draw.below(1000)) / 1000;
    else
      for (auto& x : value.values<std::int64_t>())
        x = static_cast<std::int64_t>(
          draw.below(static_cast<std::uint64_t>(feed.below)));
    feeds.emplace(feed.name, value);
  }
  return feeds;
}

} // namespace troupe::test
