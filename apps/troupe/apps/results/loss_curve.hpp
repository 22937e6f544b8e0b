// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace troupe::apps {

/// The losses of a run: one per step and one per epoch.
struct loss_history {
  std::vector<double> steps;  ///< loss of step i at index i
  std::vector<double> epochs; ///< sample-weighted mean of each epoch
  /// Number of steps done when epoch i ended.
  std::vector<std::size_t> epoch_ends;
};

/// Draws a loss curve as an SVG document: a thin line for steps, a bold line
/// for epoch means, axes with round numbers. Losses that are not finite leave
/// gaps. Long runs are reduced to the highest and lowest loss of each column.
std::string draw_loss_curve(const loss_history& history,
                            const std::string& title);

} // namespace troupe::apps
