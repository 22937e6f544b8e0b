// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/step_metrics.hpp>

#include <string>

namespace troupe::apps {

/// Draws a loss curve as an SVG document: a thin line for steps, a bold line
/// for epoch means, axes with round numbers. Losses that are not finite leave
/// gaps. Long runs are reduced to the highest and lowest loss of each column.
std::string draw_loss_curve(const loss_history& history,
                            const std::string& title);

} // namespace troupe::apps
