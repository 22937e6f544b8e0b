// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::trace {

/// How the clock of a process was brought onto the common one.
struct clock_offset {
  /// Added to the host's clock (`run_info::begin_unix_ns`) of the process.
  std::int64_t offset_ns = 0;
  /// The offset is at most so much wrong, while clocks run equally fast. -1:
  /// unknown, because no constraint bounds it on both sides, or because the
  /// constraints contradict each other.
  std::int64_t uncertainty_ns = 0;
};

/// What `merge_clocks` found.
struct clock_merge {
  std::vector<clock_offset> offsets; ///< of each process; of the first one 0
  /// Number of calls of collectives and transfers, and of parcels, that bound
  /// the offsets.
  std::size_t constraints = 0;
  /// If no offsets meet all constraints (the clocks drift): by how much they
  /// contradict each other at most. Otherwise 0.
  std::int64_t contradiction_ns = 0;
};

/// Brings the traces of the processes of one run onto one clock: shifts their
/// times, orders them by process, and gives all the same `begin_unix_ns`.
///
/// The offset between two clocks is estimated from what they have seen of each
/// other: the call of a collective ends on no rank before the last rank has
/// begun it, a `recv` ends after its `send` has begun, and a parcel arrives
/// after it was sent. The offsets that these constraints allow are an interval;
/// its middle is the estimate, half its length the uncertainty. Without
/// constraints on one side, the hosts' clocks are believed as far as the other
/// side allows.
///
/// Calls of steps that failed or were cancelled say nothing, because their ops
/// do not wait for each other; nor do steps and calls whose end a trace lacks.
///
/// Afterwards no value arrives before it was sent, unless
/// `contradiction_ns` is not 0. One trace is left as it is.
///
/// Throws error(invalid_argument) that names two files if the traces are not of
/// different processes of one run; their times are then unchanged. Of one run
/// are those of the same job, if both know theirs, that ran the same graph and,
/// on the same host, at the same time.
clock_merge merge_clocks(std::vector<process_trace>& parts);

} // namespace troupe::trace
