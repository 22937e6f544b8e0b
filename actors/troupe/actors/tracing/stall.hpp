// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/tracing/core_times.hpp>
#include <troupe/actors/tracing/usual_time.hpp>
#include <troupe/actors/wait_chain.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors {

/// Why a step does not end, or does not begin.
enum class stall_cause : std::uint8_t {
  paused,       ///< a rank is missing that somebody has paused
  lost_message, ///< a message, a value or a rank of a collective is missing
  slow_link,    ///< all ranks have come, and values are under way
  slow_op,
  stuck_worker, ///< an op is ready, and no worker runs it
  slow_feed,    ///< no step is under way: there is no data for it
  unknown,
};

std::string_view to_string(stall_cause cause) noexcept;

/// What a watchdog has seen of a step that does not go on. Times that nobody
/// knows are 0.
struct stall {
  using duration = std::chrono::nanoseconds;

  /// Why the oldest step has not ended; no links if no step is under way.
  wait_chain chain;
  /// For how long the last link has been seen as it is.
  duration since{};
  /// Of the op of the last link: for how long it has run, if that is known from
  /// its call stack, and how long it usually takes.
  duration ran{};
  usual_time usual;
  /// The function that runs; empty: unknown.
  std::string function;
  /// Of a link: bytes that it has moved in the time `since`.
  std::uint64_t moved = 0;
  /// The step that the application has no data for, and for how long.
  std::optional<std::uint64_t> awaited_step;
  duration waited_for_data{};
  /// What the machine gave to the process in the latest `cores_over`.
  core_times cores;
  duration cores_over{};
  /// How much later each op begins because somebody wants it so (run_pace).
  duration op_delay{};
  /// The rank of this process, if there are several.
  std::optional<std::size_t> rank;
};

/// The cause that the observations show.
stall_cause cause_of(const stall& seen);

/// One line: the cause, and what belongs to it: "slow op: conv2d#4@cpu:1 of
/// rank 1, step 7, runs on worker 0 for 52.0 ms; its median is 11.0 ms, that of
/// rank 0 is 10.0 ms".
std::string text_of(const stall& seen);

/// One line: the handles that wait for each other, first those that have waited
/// the longest. Of a chain of more than seven links the first three and the
/// last three, and how many there are.
std::string line_of(const wait_chain& chain);

} // namespace troupe::actors
