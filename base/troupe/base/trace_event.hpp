// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// How much is recorded. Each level includes the ones before it.
enum class trace_level : std::uint8_t {
  off,
  steps,    ///< steps, feeds, fetches, failures
  ops,      ///< when ops run, on which worker; memory; collectives
  messages, ///< every readiness message, every message to recorded actors
};

/// "off", "steps", "ops" or "messages".
std::string_view to_string(trace_level level) noexcept;
/// Throws error(invalid_argument) for a text that is no level.
trace_level parse_trace_level(std::string_view text);

/// Files hold these numbers: a new kind is added at the end, and gives traces a
/// new format (trace/trace_format.hpp).
enum class event_kind : std::uint8_t {
  step_begin,
  step_end, ///< `amount`: 1 if the step failed or was cancelled, else 0
  feed,     ///< the host passes in variable `from`; `amount`: bytes
  fetch, ///< the caller takes the value that op `from` copied; `amount`: bytes
  failure,    ///< `from` made the step fail
  run_begin,  ///< `from` begins to run
  run_end,    ///< `from` has run or was launched
  completion, ///< a pending launch of `from` is complete
  /// `from` runs on a worker other than `amount`, which made it ready
  hand_over,
  help_begin, ///< an idle worker begins to run parts of `from`
  help_end,   ///< the idle worker has run the last remaining part
  arrival,    ///< the value `to` of rank `amount` has arrived at `from`
  /// collective `from` has all values of its devices and begins to merge;
  /// `amount`: bytes of those that are temporaries
  merge_begin,
  merge_end, ///< collective `from` has merged the values
  /// `from` wrote the first version of temporary `to`: `amount` bytes
  allocation,
  /// `from` freed temporary `to`, named by its first version: `amount` bytes
  deallocation,
  /// sent by `from` (`no_handle`: a start) to `to`, which counts it for `step`
  message,
  /// op `from` has sent a value, or why there is none, to op `to` of another
  /// process: `amount` bytes
  parcel_sent,
  /// what op `from` of another process has sent to `to` is here: `amount` bytes
  parcel_arrived,

  // Of the application's actors (traced_actor.hpp). `from` and `to` are
  // `actor_number`s. `amount` has a `mail_id`.

  mail, ///< sent by `from` (`no_actor`: by nobody that is known) to `to`
  /// `from` begins to handle a message of `to`; `step`: how many wait behind it
  handling_begin,
  handling_end, ///< `from` has handled it; `step`: a `handling_result`

  /// The thread of worker number `from` waited `amount` nanoseconds for a core
  /// since the event before of this kind and worker. `no_handle`: other
  /// machines of the host took so much of all cores' time. Recorded at the end
  /// of a step, by other threads than the worker's.
  core_wait,
};
/// How many kinds there are.
inline constexpr std::size_t event_kinds = 23;

/// True of events whose `from` and `to` are actors, not handles.
constexpr bool is_of_actor(event_kind kind) noexcept {
  return kind >= event_kind::mail && kind <= event_kind::handling_end;
}

/// What became of a message to an actor.
enum class handling_result : std::uint8_t {
  handled,
  skipped, ///< stays in the mailbox until the actor has changed its behavior
  dropped, ///< nobody waits for it: a response that came too late
  failed,  ///< the handler threw an exception
};
/// How many results there are.
inline constexpr std::size_t handling_results = 4;

/// The `amount` of events of actors.
struct mail_id {
  /// Which message: unique among those in a mailbox at the same time.
  std::uint32_t message = 0;
  std::uint32_t type = 0; ///< a number of the recorder's `actor_table`

  constexpr std::uint64_t amount() const noexcept { ///< both in one number
    return std::uint64_t{type} << 32 | message;
  }
  static constexpr mail_id of(std::uint64_t amount) noexcept { ///< its inverse
    return {static_cast<std::uint32_t>(amount),
            static_cast<std::uint32_t>(amount >> 32)};
  }
};

/// The name of the value, such as "run_begin".
std::string_view to_string(event_kind kind) noexcept;

/// The lowest level at which events of this kind are recorded.
constexpr trace_level level_of(event_kind kind) noexcept {
  if (kind <= event_kind::failure || kind == event_kind::core_wait)
    return trace_level::steps;
  return kind == event_kind::message ? trace_level::messages : trace_level::ops;
}

/// A recorded event.
struct trace_event {
  std::uint64_t time = 0; ///< in ticks (base/spin.hpp)
  std::uint64_t amount = 0;
  handle_id from = no_handle;
  handle_id to = no_handle;
  std::uint32_t step = 0; ///< low 32 bits of the step number
  /// The worker that recorded it; `recorder::no_worker`: another thread.
  std::uint16_t worker = 0;
  event_kind kind = event_kind::step_begin;
};
static_assert(sizeof(trace_event) == 32);

} // namespace troupe
