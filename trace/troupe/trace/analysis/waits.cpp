// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/waits.hpp>

#include <troupe/trace/analysis/readiness.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace troupe::trace {

std::string_view to_string(wait_reason reason) noexcept {
  switch (reason) {
  case wait_reason::message: return "message";
  case wait_reason::begin: return "begin";
  case wait_reason::worker: return "worker";
  case wait_reason::rank: return "rank";
  }
  return "?";
}

namespace {

class wait_log {
public:
  void add(const op_run& r, const op_run* waited_for, wait_reason reason,
           std::uint64_t begin, std::uint64_t end) {
    add(r, waited_for ? waited_for->op : no_handle, reason, begin, end);
  }
  /// The time in which `r` waited for a value of another process.
  void add(const op_run& r, const parcel& p) {
    const auto end =
      p.kind == parcel_kind::value ? p.arrived->time : p.sent->time;
    auto* w =
      add(r, p.sender, wait_reason::rank, r.begin, std::min(end, r.done));
    if (!w || p.bytes == 0)
      return;
    ++w->parcels;
    w->bytes += p.bytes;
    w->travel_ns += p.travel_ns();
  }
  std::vector<op_wait> sorted() const {
    std::vector<op_wait> all;
    for (const auto& [key, w] : waits_)
      all.push_back(w);
    std::ranges::stable_sort(all, std::ranges::greater{}, &op_wait::total_ns);
    return all;
  }

private:
  op_wait* add(const op_run& r, handle_id other, wait_reason reason,
               std::uint64_t begin, std::uint64_t end) {
    if (end <= begin)
      return nullptr;
    auto& w = waits_[{r.op, other, reason}];
    w.op = r.op;
    w.waited_for = other;
    w.reason = reason;
    ++w.count;
    w.total_ns += end - begin;
    if (end - begin > w.longest_ns) {
      w.longest_ns = end - begin;
      w.longest_in = r.step;
    }
    return &w;
  }

  std::map<std::tuple<handle_id, handle_id, wait_reason>, op_wait> waits_;
};

} // namespace

std::vector<op_wait> find_waits(const timeline& all, const op_graph& graph,
                                const parcel_list& parcels) {
  wait_log log;
  // Until when each device's compute stream was busy.
  std::vector<std::uint64_t> busy_until(graph.graph().devices.size());
  for (const auto& r : all.runs()) {
    const auto* own = all.find_op_step(r.step);
    const auto* p = own ? parcels.find(r.op, r.step) : nullptr;
    if (p && p->is_whole())
      log.add(r, *p);
    else if (own)
      if (const auto* partner = late_partner(all, graph, r))
        log.add(r, partner, wait_reason::rank, r.begin, partner->begin);
    const auto& h = graph.graph().handles[r.op];
    if (h.stream != "compute" || h.device >= busy_until.size())
      continue;
    auto& busy = busy_until[h.device];
    const auto free = std::max(busy, own ? own->after : 0);
    if (own && r.begin > free) {
      const auto ready = ready_at(all, graph, r);
      const auto from = std::max(ready.time, free);
      log.add(r, ready.by, ready.by ? wait_reason::message : wait_reason::begin,
              free, from);
      log.add(r, nullptr, wait_reason::worker, from, r.begin);
    }
    busy = std::max(busy, r.end);
  }
  return log.sorted();
}

} // namespace troupe::trace
