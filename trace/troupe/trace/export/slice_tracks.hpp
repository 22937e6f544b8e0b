// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/export/track_slices.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace troupe::trace {

/// Which slice of a track. False: none.
struct slice_ref {
  track_id track;
  std::uint64_t number = 0; ///< from 1

  explicit operator bool() const noexcept { return number != 0; }
};

/// A track while it is built. It keeps its last outermost slice, with those
/// within it, until the next one begins: messages follow the end of a run.
class slice_track {
public:
  /// @param sink null: slices are not passed on
  slice_track(track_id id, slice_sink* sink) : id_(id), sink_(sink) {}

  /// Begins a slice, within the innermost open one if there is any.
  void begin(slice s, std::vector<std::uint64_t> received);
  /// Ends the open slice of that kind, op and step, and those within it.
  /// Returns false if there is none.
  slice_ref end(const slice& like, std::uint64_t time);
  /// The open slice of that kind, op and step; null if there is none.
  const slice* find_open(const slice& like) const noexcept;
  /// Ends all open slices, whose end the trace lacks.
  void cut(std::uint64_t time);
  /// Passes on what is kept. All slices must have ended.
  void flush();
  /// What became of the message that the innermost open slice handles.
  void set_result(handling_result result) {
    kept_[open_.back()].handled.result = result;
  }
  /// Adds a message that the kept slice sends.
  void send(std::uint64_t message) { sent_.push_back(message); }

  bool is_open() const noexcept { return !open_.empty(); }
  /// The innermost open slice; an ended one or none, if none is open.
  const slice& top() const noexcept {
    static constexpr slice none{};
    return is_open() ? kept_[open_.back()] : none;
  }
  /// True if the outermost slice `number` is still kept.
  bool keeps(std::uint64_t number) const noexcept {
    return !kept_.empty() && number == number_;
  }
  std::uint64_t last_end() const noexcept { return last_end_; }

private:
  void close_top(std::uint64_t time, bool is_cut);

  track_id id_;
  slice_sink* sink_;
  std::vector<slice> kept_;       // the outermost one first
  std::vector<std::size_t> open_; // indices into `kept_`, the innermost last
  std::vector<std::uint64_t> received_, sent_; // of the outermost one
  std::uint64_t number_ = 0;                   // of the outermost one
  std::uint64_t last_end_ = 0;
};

/// The tracks of a process.
class slice_tracks {
public:
  explicit slice_tracks(slice_sink* sink) : sink_(sink) {}

  slice_track& at(track_id id);
  /// The first track of its kind on which nothing is open at `time`.
  slice_track& free(track_kind kind, std::uint64_t time);
  /// Ends the open slice of that kind, op and step on the first track that has
  /// one. Returns false if there is none.
  slice_ref end(track_kind kind, const slice& like, std::uint64_t time);
  /// The open slice of that kind, op and step; null if no track has one. Valid
  /// until slices begin or end.
  const slice* find_open(track_kind kind, const slice& like) const noexcept;
  /// Ends everything.
  void close(std::uint64_t time);

  bool has(const slice_ref& ref) const;
  /// Adds a message that the slice sends. Requires `has(from)`.
  void send(const slice_ref& from, std::uint64_t message) {
    at(from.track).send(message);
  }

private:
  slice_sink* sink_;
  // deques, because references must stay valid
  std::array<std::deque<slice_track>, track_kinds> tracks_;
};

} // namespace troupe::trace
