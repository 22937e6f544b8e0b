// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/statistics.hpp>
#include <troupe/trace/analysis/timeline.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::trace {

/// How run b differs from run a.
enum class difference : std::uint8_t {
  none,   ///< what differs is within the spread of the steps
  faster, ///< b takes less time than a
  slower,
  unknown, ///< in fewer than `least_steps` steps of one
  only_a,  ///< b has none
  only_b,  ///< a has none
};
/// For people: "no difference", "slower", "only in A", ...
std::string_view to_string(difference d) noexcept;

/// Two runs with fewer counted steps are not compared.
inline constexpr std::size_t least_steps = 8;

/// The time of the ops of a type, or of one op, per step, in both runs.
struct diff_row {
  std::string name;
  std::size_t steps_a = 0, steps_b = 0; ///< with such an op
  spread a_ns, b_ns;                    ///< over the steps
  double p = 1;                         ///< of the rank test (rank_test)
  difference found = difference::unknown;
  /// Median of b / median of a; 0 if one of them is unknown.
  double ratio() const {
    return a_ns.median > 0 && b_ns.median > 0 ? b_ns.median / a_ns.median : 0;
  }
};

/// What the rows of a comparison stand for: types of ops, or single ops.
enum class diff_by : std::uint8_t { type, op };

/// Two runs are said to differ in a row if both of these hold: the quartile
/// ranges of their steps do not overlap, and the rank test gives p < 0.01.
/// Everything else is called no difference, whatever the medians say.
struct trace_difference {
  /// Step times: means of as many steps in a row as were in flight together.
  diff_row step;
  std::vector<diff_row> rows; ///< the largest difference of medians first
  /// Kinds of ops that only one of the graphs has: by type, attributes and
  /// shapes. Ops that merge values are left out, because they depend on the
  /// devices. Both are 0 for runs of one program.
  std::size_t kinds_only_a = 0, kinds_only_b = 0;
};

/// Compares the steady steps of two runs.
trace_difference compare(const timeline& a, const op_graph& graph_a,
                         const timeline& b, const op_graph& graph_b,
                         diff_by by);

} // namespace troupe::trace
