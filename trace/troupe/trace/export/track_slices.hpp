// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/parcels.hpp>
#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::trace {

// What viewers show: rows of slices that are nested or apart. Numbers about
// runs and steps come from analysis/timeline.hpp.

/// A parcel of which both ends are in the traces.
struct numbered_parcel {
  std::uint64_t number = 0; ///< from 1
  const parcel* what = nullptr;
};

/// One of the traces that are shown together.
struct traced_process {
  const process_trace* trace = nullptr;
  /// Its number among them. Also the rank, unless one is missing.
  std::size_t number = 0;
  /// What is added to the times of all processes, so that none is negative.
  std::int64_t offset_ns = 0;
  /// By index of the event that is its end in this trace.
  std::unordered_multimap<std::size_t, numbered_parcel> parcels = {};
};

/// Moves the origin to the earliest phase of all traces. They must be on one
/// clock (merge_clocks) and outlive the result.
/// @param parcels of these traces; outlives the result
std::vector<traced_process> from_origin(std::span<const process_trace> traces,
                                        std::span<const parcel> parcels = {});

/// What the rows of a picture are for. Each kind has its own numbers.
enum class track_kind : std::uint8_t {
  start_up, ///< phases before the first step
  steps,    ///< several if steps overlap
  worker,   ///< by number of the worker
  other,    ///< what ran on other threads
  /// launches that completed later, from launch to completion, and merges that
  /// ended after their run
  in_flight,
  actor, ///< of the application, by `actor_number`
};
inline constexpr std::size_t track_kinds = 6;

struct track_id {
  track_kind kind = track_kind::start_up;
  std::uint32_t number = 0;

  friend bool operator==(const track_id&, const track_id&) = default;
};

inline constexpr std::uint64_t tracks_per_kind = 100'000;
/// A number for viewers, from 1 on. They show tracks in the order of these.
constexpr std::uint64_t number_of(track_id track) noexcept {
  return 1 + static_cast<std::uint64_t>(track.kind) * tracks_per_kind
         + track.number;
}
/// More than `number_of` returns.
inline constexpr std::uint64_t after_tracks = 1 + track_kinds * tracks_per_kind;

/// A number of a message that is unique over the processes. JSON's numbers hold
/// it exactly.
constexpr std::uint64_t message_id(std::size_t process,
                                   std::uint64_t message) noexcept {
  return (static_cast<std::uint64_t>(process) << 40) + message;
}

/// A number of a parcel that no message has.
constexpr std::uint64_t parcel_id(std::uint64_t parcel) noexcept {
  return (std::uint64_t{1} << 52) + parcel;
}

/// "worker 3", "other threads", "other threads 2", "actor 4".
std::string to_string(track_id track);
/// The same, but "actor feeder#12" of a trace that knows the actor.
std::string name_of(track_id track, const process_trace& in);

enum class slice_kind : std::uint8_t {
  phase,
  step,
  run,       ///< an op ran or was launched
  help,      ///< an idle worker ran parts of an op
  merge,     ///< a collective merged
  in_flight, ///< a launch of an op, to its completion
  handling,  ///< an actor of the application handled a message
};
inline constexpr std::size_t slice_kinds = 7;

std::string_view to_string(slice_kind kind) noexcept;
std::string_view to_string(handling_result result) noexcept;

/// What an actor handled.
struct handled_message {
  actor_number sender = no_actor;    ///< not set if that is not recorded
  std::optional<std::uint64_t> sent; ///< when; not set if that is not recorded
  std::uint32_t waiting = 0;         ///< messages behind it in the mailbox
  handling_result result = handling_result::handled;
};

/// What a track did from `begin` to `end`: at least 1 ns. Slices of one track
/// are apart from each other or one lies within the other.
struct slice {
  slice_kind kind = slice_kind::run;
  track_id track;
  std::uint64_t begin = 0, end = 0; ///< in ns
  handle_id op = no_handle;
  std::uint32_t step = 0;
  /// Of a phase its name, of a handling the types of the message. Empty for
  /// other kinds.
  std::string_view text;
  /// When the last message to this run of the op was sent; 0 if not recorded.
  std::uint64_t ready = 0;
  /// Who sent that message; `no_handle` if not recorded, or a start did.
  handle_id waited_for = no_handle;
  handled_message handled; ///< of a handling
  /// The trace lacks its end, which is where the next event was.
  bool is_cut = false;
  /// Numbers of messages that were sent to this run and from it. Each number
  /// comes twice in a process: from one slice, and later to another one.
  std::span<const std::uint64_t> received, sent;
};

/// A feed, a fetch, a failure, or an end of a parcel.
struct instant {
  event_kind kind = event_kind::failure;
  /// Of a parcel: where its op runs, if the trace has its run.
  track_id track;
  std::uint64_t time = 0;
  handle_id handle = no_handle;
  std::uint32_t step = 0;
  std::uint64_t bytes = 0;
  ///@{
  /// Of a parcel: the op at its other end, and its number; 0: the traces lack
  /// that end.
  handle_id peer = no_handle;
  std::uint64_t parcel = 0;
  ///@}
};
constexpr bool is_parcel(const instant& i) noexcept {
  return i.kind == event_kind::parcel_sent
         || i.kind == event_kind::parcel_arrived;
}

/// Memory of temporaries and feeds after a change (memory_account).
struct memory_sample {
  std::uint64_t time = 0;
  std::uint32_t device = 0;
  handle_id variable = no_handle;
  handle_id op = no_handle; ///< `no_handle`: it was fed
  std::uint32_t step = 0;
  std::int64_t change = 0;      ///< bytes
  std::uint64_t live_bytes = 0; ///< of the device
};

/// Takes what a process did. Slices of one track come in the order of
/// their begins, an outer one before those within it. There is no order between
/// tracks.
class slice_sink {
public:
  virtual ~slice_sink() = default;
  virtual void take(const slice& s) = 0;
  virtual void take(const instant&) {}
  virtual void take(const memory_sample&) {}
};

enum class with_messages : bool { no, yes };

/// Passes what a process did to `sink`. What was lost leaves cut slices
/// behind, or none; it never makes slices overlap. Memory: a few hundred bytes
/// per handle and actor, what waits in mailboxes, and with messages a bit per
/// event.
void build_slices(const traced_process& process, with_messages messages,
                  slice_sink& sink);

} // namespace troupe::trace
