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

/// Costs by op type, shapes and device: what `troupe trace costs` prints.
class cost_table {
public:
  /// Measures the steps of a run that count (`timeline::op_steps`).
  static cost_table measure(std::span<const process_trace> parts,
                            const timeline& all, const op_graph& graph);

  /// The most time in all runs first.
  std::span<const op_cost> rows() const noexcept { return rows_; }
  /// The row of an op of the graph; null if it never ran.
  const op_cost* find(handle_id op) const;

private:
  std::vector<op_cost> rows_;
  std::vector<std::size_t> row_of_; ///< by handle; `rows_.size()`: none
};

} // namespace troupe::trace
