// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>

#include <cstdint>

namespace troupe::trace {

/// When an op could have begun.
struct readiness {
  std::uint64_t time = 0;
  /// The run whose message was the last one; null: the begin of the step.
  const op_run* by = nullptr;
};

/// The last of all that `r` waited for: results of ops before it, and the begin
/// of its step. It is at most `r.begin`, so that no wait is negative. Ops
/// without a recorded run are taken to have been earlier.
readiness ready_at(const timeline& all, const op_graph& graph, const op_run& r);

/// The partner of `r` (op_graph::partners) that began last, if that was after
/// the begin of `r` and before its results were there; null otherwise.
const op_run* late_partner(const timeline& all, const op_graph& graph,
                           const op_run& r);

/// The run before `r` whose results were there last, if that was after `r` and
/// its partners had begun, and before the results of `r`; null otherwise. A
/// rank begins a collective while its earlier ones are under way.
const op_run* earlier_under_way(const timeline& all, const op_graph& graph,
                                const op_run& r);

/// Time that the op itself took: from its begin, from that of its last partner,
/// or from the results of `earlier_under_way`, until its results were there.
std::uint64_t own_time(const timeline& all, const op_graph& graph,
                       const op_run& r);

} // namespace troupe::trace
