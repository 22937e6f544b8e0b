// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe {

/// The part of each batch that a source makes: the samples of successive
/// devices. Shards are those of `executor::own_share`. By default, all of it.
struct batch_share {
  std::int64_t first_device = 0;
  std::int64_t devices = 1;     ///< number of these devices
  std::int64_t all_devices = 1; ///< of the whole run

  /// Successive samples of a batch.
  struct range {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  /// Those of a batch of so many samples.
  range of(std::int64_t samples) const;
};

} // namespace troupe
