// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::trace {

/// A change of costs, for "what if".
struct cost_change {
  /// What a change does to the time of an op.
  enum class kind : std::uint8_t { factor, added, fixed };
  /// A type of ops, or the name of one op, such as "conv2d#4@cpu:1"; "*": all.
  std::string ops;
  kind how = kind::factor;
  double value = 1; ///< a factor, or nanoseconds

  /// The changed time of an op that took so long, both in nanoseconds.
  double of(double ns) const;
};

/// Reads "conv2d=x0.5" (half the time), "conv2d=+2ms" (longer), "conv2d=-1us"
/// (shorter) or "conv2d=100us". Units are ns, us, ms and s. A factor is at most
/// 10^6, a time at most 10^6 s. Throws error(invalid_argument) that names the
/// entry.
cost_change parse_cost_change(std::string_view entry);

} // namespace troupe::trace
