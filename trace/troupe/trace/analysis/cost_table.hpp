// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/statistics.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::trace {

/// What the ops of a type with the same shapes cost on a device.
struct op_cost {
  std::string type;
  std::string shapes;    ///< of the inputs, as declared (handle_info::shape)
  std::string device;    ///< "cpu:0"
  std::size_t count = 0; ///< runs that were measured
  /// Time of a run, in nanoseconds. Of a collective and a `recv` without the
  /// time in which it waited for others.
  spread ns;
  double bytes = 0; ///< that a run allocates for its results, on average
};

/// A change of costs, for "what if".
struct cost_change {
  enum class kind : std::uint8_t { factor, added, fixed };
  std::string type; ///< of the ops; "*": all
  kind how = kind::factor;
  double value = 1; ///< a factor, or nanoseconds

  double of(double ns) const;
};

/// Reads "conv2d=x0.5" (half the time), "conv2d=+2ms" (longer), "conv2d=-1us"
/// (shorter) or "conv2d=100us". Units are ns, us, ms and s. A factor is at most
/// 10^6, a time at most 10^6 s. Throws error(invalid_argument) that names the
/// entry.
cost_change parse_cost_change(std::string_view entry);

/// Costs by op type, shapes and device. One table is shared by all that
/// predicts: `troupe trace costs` prints it, and `replay` takes it.
class cost_table {
public:
  /// Measures the steady steps of a run; all steps if those have no runs.
  static cost_table measure(std::span<const process_trace> parts,
                            const timeline& all, const op_graph& graph);

  /// The most time in all runs first.
  std::span<const op_cost> rows() const noexcept { return rows_; }
  /// The row of an op of the graph; null if it never ran.
  const op_cost* find(handle_id op) const;
  /// A copy in which the median and the quartiles are changed. Throws
  /// error(not_found) if a change is of a type that the table lacks.
  cost_table changed(std::span<const cost_change> changes) const;

private:
  std::vector<op_cost> rows_;
  std::vector<std::size_t> row_of_; ///< by handle; `rows_.size()`: none
};

} // namespace troupe::trace
