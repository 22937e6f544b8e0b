// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// The figures of one step of a training.
struct step_metrics {
  std::uint64_t step = 0;
  double loss = 0;                     ///< sample-weighted mean over devices
  std::span<const double> losses = {}; ///< per device
  double ms = 0; ///< since the previous step ended, or since its own start
  double samples_per_s = 0;
};

/// The losses of a run: one per step and one per epoch.
struct loss_history {
  std::vector<double> steps;  ///< loss of step i at index i
  std::vector<double> epochs; ///< sample-weighted mean of each epoch
  /// Number of steps done when epoch i ended.
  std::vector<std::size_t> epoch_ends;
};

} // namespace troupe
