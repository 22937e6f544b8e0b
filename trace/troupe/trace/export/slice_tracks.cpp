// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/slice_tracks.hpp>

#include <algorithm>
#include <utility>

namespace troupe::trace {

void slice_track::begin(slice s, std::vector<std::uint64_t> received) {
  if (!is_open())
    flush();
  // Clocks of two threads can differ by some ns.
  const auto earliest = kept_.empty() ? last_end_ : kept_.back().begin;
  s.begin = std::max({s.begin, earliest, last_end_});
  s.track = id_;
  if (kept_.empty()) {
    received_ = std::move(received);
    ++number_;
  }
  open_.push_back(kept_.size());
  kept_.push_back(s);
}

void slice_track::close_top(std::uint64_t time, bool is_cut) {
  auto& s = kept_[open_.back()];
  s.end = std::max({time, s.begin + 1, last_end_});
  s.is_cut = is_cut;
  last_end_ = s.end;
  open_.pop_back();
}

namespace {

auto is_like(const slice& like) {
  return [&like](const slice& s) {
    return s.kind == like.kind && s.op == like.op && s.step == like.step;
  };
}

} // namespace

const slice* slice_track::find_open(const slice& like) const noexcept {
  const auto found = std::ranges::find_if(
    open_, is_like(like),
    [this](std::size_t i) -> const slice& { return kept_[i]; });
  return found == open_.end() ? nullptr : &kept_[*found];
}

slice_ref slice_track::end(const slice& like, std::uint64_t time) {
  const auto found = std::ranges::find_if(
    open_, is_like(like),
    [this](std::size_t i) -> const slice& { return kept_[i]; });
  if (found == open_.end())
    return {};
  const auto depth = static_cast<std::size_t>(found - open_.begin());
  while (open_.size() > depth + 1)
    close_top(time, true);
  close_top(time, false);
  return {id_, number_};
}

void slice_track::cut(std::uint64_t time) {
  while (is_open())
    close_top(time, true);
}

void slice_track::flush() {
  if (!kept_.empty() && sink_) {
    kept_.front().received = received_;
    kept_.front().sent = sent_;
    for (auto& s : kept_)
      sink_->take(s);
  }
  kept_.clear();
  received_.clear();
  sent_.clear();
}

slice_track& slice_tracks::at(track_id id) {
  auto& all = tracks_[static_cast<std::size_t>(id.kind)];
  while (all.size() <= id.number)
    all.emplace_back(track_id{id.kind, static_cast<std::uint32_t>(all.size())},
                     sink_);
  return all[id.number];
}

slice_track& slice_tracks::free(track_kind kind, std::uint64_t time) {
  auto& all = tracks_[static_cast<std::size_t>(kind)];
  const auto found = std::ranges::find_if(all, [time](auto& track) {
    return !track.is_open() && track.last_end() <= time;
  });
  const auto number = static_cast<std::uint32_t>(found - all.begin());
  return at({kind, number});
}

slice_ref slice_tracks::end(track_kind kind, const slice& like,
                            std::uint64_t time) {
  for (auto& track : tracks_[static_cast<std::size_t>(kind)])
    if (const auto ended = track.end(like, time))
      return ended;
  return {};
}

const slice* slice_tracks::find_open(track_kind kind,
                                     const slice& like) const noexcept {
  for (auto& track : tracks_[static_cast<std::size_t>(kind)])
    if (const auto* open = track.find_open(like))
      return open;
  return nullptr;
}

void slice_tracks::close(std::uint64_t time) {
  for (auto& all : tracks_)
    for (auto& track : all) {
      track.cut(time);
      track.flush();
    }
}

bool slice_tracks::has(const slice_ref& ref) const {
  const auto& all = tracks_[static_cast<std::size_t>(ref.track.kind)];
  return ref && ref.track.number < all.size()
         && all[ref.track.number].keeps(ref.number);
}

} // namespace troupe::trace
