// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/batch_share.hpp>

#include <algorithm>

namespace troupe {

// Shard sizes differ by at most one, and the larger shards come first.
batch_share::range batch_share::of(std::int64_t samples) const {
  const auto before = [&](std::int64_t device) {
    return samples / all_devices * device
           + std::min(device, samples % all_devices);
  };
  const auto first = before(first_device);
  return {first, before(first_device + devices) - first};
}

} // namespace troupe
