// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/recorder.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace troupe::dashboard {

/// What a slice of time was spent on.
enum class slice_kind : std::uint8_t {
  run,     ///< a worker ran the op, or launched it
  help,    ///< an idle worker ran parts of the op
  merge,   ///< from the last arrival at a collective until its end
  pending, ///< from the launch of an op to its completion
  /// What was sent to op `op` of another process, or has come from it: without
  /// a length, because one process knows one end.
  parcel,
};

/// A part of the timeline. Times are in nanoseconds since the run's begin.
struct slice {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  handle_id op = no_handle;
  std::uint32_t step = 0;
  std::uint16_t worker = recorder::no_worker;
  slice_kind kind = slice_kind::run;
};

/// Makes slices of events, and keeps the newest ones.
///
/// Thread rule: one thread at a time.
class slice_log {
public:
  /// @param kept how many slices are kept
  /// @param handles of the graph; events come from a file and can name others
  slice_log(std::size_t kept, std::size_t handles)
    : kept_(kept), op_ns_(handles) {}

  /// Takes events in their order. Ends without a begin are left out, as after
  /// lost events.
  void add(const trace_event& e);
  /// The slices that are kept, ordered by their end.
  const std::deque<slice>& slices() const noexcept { return slices_; }
  /// How many slices there have been, kept or not.
  std::uint64_t total() const noexcept { return total_; }
  /// What a worker runs now; `no_handle`: nothing.
  handle_id running_on(std::size_t worker) const noexcept;
  /// Nanoseconds that a worker has been busy so far, up to `now`.
  std::uint64_t busy_ns(std::size_t worker, std::uint64_t now) const noexcept;
  /// Nanoseconds that an op has run so far: of runs that have ended, up to the
  /// completion of what they launched.
  std::uint64_t op_ns(handle_id op) const noexcept;
  /// Nothing is known of what comes after `now`, such as the ends of slices
  /// that are open.
  void forget_open(std::uint64_t now);

private:
  /// A worker's open slices: an op can run within another one.
  struct worker_state {
    std::vector<slice> open;
    std::uint64_t busy_since = 0; ///< if there are open slices
    std::uint64_t busy_ns = 0;    ///< before that
  };

  worker_state& at(std::uint16_t worker);
  void begin(const trace_event& e, slice_kind kind);
  void end(const trace_event& e, slice_kind kind);
  void begin_elsewhere(const trace_event& e, slice_kind kind);
  void end_elsewhere(const trace_event& e, slice_kind kind);
  void keep_parcel(const trace_event& e, handle_id peer);
  void keep(const slice& done);
  void count_time(const slice& done);

  std::size_t kept_;
  std::deque<slice> slices_;
  std::uint64_t total_ = 0;
  std::vector<worker_state> workers_;
  std::vector<std::uint64_t> op_ns_;                       // by handle
  std::unordered_map<handle_id, slice> launches_, merges_; // by op
};

} // namespace troupe::dashboard
