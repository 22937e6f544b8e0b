// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/slice_log.hpp>

#include <algorithm>
#include <utility>

namespace troupe::dashboard {

void slice_log::add(const trace_event& e) {
  switch (e.kind) {
  case event_kind::run_begin: return begin(e, slice_kind::run);
  case event_kind::run_end: return end(e, slice_kind::run);
  case event_kind::help_begin: return begin(e, slice_kind::help);
  case event_kind::help_end: return end(e, slice_kind::help);
  case event_kind::merge_begin: return begin_elsewhere(e, slice_kind::merge);
  case event_kind::merge_end: return end_elsewhere(e, slice_kind::merge);
  case event_kind::completion: return end_elsewhere(e, slice_kind::pending);
  case event_kind::parcel_sent: return keep_parcel(e, e.to);
  case event_kind::parcel_arrived: return keep_parcel(e, e.from);
  default: return;
  }
}

slice_log::worker_state& slice_log::at(std::uint16_t worker) {
  if (workers_.size() <= worker)
    workers_.resize(worker + std::size_t{1});
  return workers_[worker];
}

void slice_log::begin(const trace_event& e, slice_kind kind) {
  if (e.worker == recorder::no_worker)
    return;
  auto& w = at(e.worker);
  if (w.open.empty())
    w.busy_since = e.time;
  w.open.push_back({e.time, 0, e.from, e.step, e.worker, kind});
}

// Open slices above the one that ends have lost their end.
void slice_log::end(const trace_event& e, slice_kind kind) {
  if (e.worker == recorder::no_worker)
    return;
  auto& w = at(e.worker);
  const auto found =
    std::find_if(w.open.rbegin(), w.open.rend(), [&](const slice& s) {
      return s.op == e.from && s.step == e.step && s.kind == kind;
    });
  if (found == w.open.rend())
    return;
  auto done = *found;
  done.end = std::max(e.time, done.begin);
  w.open.erase(found.base() - 1, w.open.end());
  if (w.open.empty())
    w.busy_ns += done.end - std::min(done.end, w.busy_since);
  keep(done);
  if (kind == slice_kind::run) // should it be a launch, its completion follows
    launches_[e.from] = {
      done.end, 0, e.from, e.step, recorder::no_worker, slice_kind::pending};
}

void slice_log::begin_elsewhere(const trace_event& e, slice_kind kind) {
  merges_[e.from] = {e.time, 0, e.from, e.step, e.worker, kind};
}

void slice_log::end_elsewhere(const trace_event& e, slice_kind kind) {
  auto& open = kind == slice_kind::merge ? merges_ : launches_;
  const auto found = open.find(e.from);
  if (found == open.end() || found->second.step != e.step)
    return;
  auto done = found->second;
  open.erase(found);
  done.end = std::max(e.time, done.begin);
  keep(done);
}

void slice_log::keep_parcel(const trace_event& e, handle_id peer) {
  keep({e.time, e.time, peer, e.step, e.worker, slice_kind::parcel});
}

void slice_log::keep(const slice& done) {
  if (done.kind == slice_kind::run || done.kind == slice_kind::pending)
    count_time(done);
  slices_.push_back(done);
  ++total_;
  if (slices_.size() > kept_)
    slices_.pop_front();
}

void slice_log::count_time(const slice& done) {
  if (done.op < op_ns_.size())
    op_ns_[done.op] += done.end - done.begin;
}

std::uint64_t slice_log::op_ns(handle_id op) const noexcept {
  return op < op_ns_.size() ? op_ns_[op] : 0;
}

handle_id slice_log::running_on(std::size_t worker) const noexcept {
  return worker < workers_.size() && !workers_[worker].open.empty()
           ? workers_[worker].open.back().op
           : no_handle;
}

std::uint64_t slice_log::busy_ns(std::size_t worker,
                                 std::uint64_t now) const noexcept {
  if (worker >= workers_.size())
    return 0;
  const auto& w = workers_[worker];
  return w.busy_ns + (w.open.empty() ? 0 : now - std::min(now, w.busy_since));
}

void slice_log::forget_open(std::uint64_t now) {
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    workers_[w].busy_ns = busy_ns(w, now);
    workers_[w].open.clear();
  }
  launches_.clear();
  merges_.clear();
}

} // namespace troupe::dashboard
