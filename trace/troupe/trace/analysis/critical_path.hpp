// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::trace {

/// What happened in a part of a critical path.
enum class path_kind : std::uint8_t {
  compute, ///< an op ran that merges nothing
  merging, ///< a collective, a merging update or a transfer ran
  worker,  ///< the next op could have begun, and its worker ran no other
  ending,  ///< all ops had run, but the step had not ended
};
/// How many kinds there are.
inline constexpr std::size_t path_kinds = 4;
/// For people: "compute", "merging", "waiting for a worker" or "ending".
std::string_view to_string(path_kind kind) noexcept;

/// A part of a critical path; times as in the trace, in nanoseconds.
struct path_part {
  path_kind kind = path_kind::compute;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  handle_id op = no_handle; ///< that ran or waited
  std::uint16_t worker = 0;
  std::uint16_t process = 0;
};

/// Why a step took as long as it did: parts without gaps from
/// `step_times::after` to its end. Their lengths add up to the step time.
///
/// Walks back from the op whose results were there last. An op can begin when
/// its last message has come and its stream has ended the op before, on
/// whatever worker. (Of a stream that runs several ops at once the messages
/// alone count.) Before an op's run come, back to when it could have begun, the
/// runs that its worker was busy with, and what these waited for; then the run
/// that its stream was busy with, or that sent the last message. If ranks of a
/// collective waited for the last one, the path goes on with that rank.
struct critical_path {
  std::uint32_t step = 0;
  std::vector<path_part> parts; ///< the earliest first

  /// Length of all parts, in nanoseconds.
  std::uint64_t total() const;
  /// Length of the parts of each kind.
  std::array<std::uint64_t, path_kinds> by_kind() const;
};

/// Of a step of the timeline; without recorded runs only an `ending` part.
critical_path find_critical_path(const timeline& all, const op_graph& graph,
                                 const step_times& step);

/// The step whose time is the median of `timeline::op_steps`, or without any of
/// the steady steps. Null if there is no step. If steps overlap, one can end
/// right behind the one before: its time says nothing, and does not count.
const step_times* median_step(const timeline& all);
/// The step that took longest of the steady ones that are whole; of all steady
/// ones if none is whole. Null if there is no step.
const step_times* slowest_step(const timeline& all);

} // namespace troupe::trace
