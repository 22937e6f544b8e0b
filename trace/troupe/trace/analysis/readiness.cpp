// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/readiness.hpp>

#include <algorithm>

namespace troupe::trace {

readiness ready_at(const timeline& all, const op_graph& graph,
                   const op_run& r) {
  readiness found;
  const auto steps = all.steps();
  const auto own =
    std::ranges::lower_bound(steps, r.step, {}, &step_times::step);
  if (own != steps.end() && own->step == r.step)
    found.time = own->begin;
  for (const auto& d : graph.before(r.op)) {
    if (d.distance > r.step)
      continue;
    const auto* before = all.find(d.op, r.step - d.distance);
    if (before && before != &r && before->done > found.time)
      found = {before->done, before};
  }
  found.time = std::min(found.time, r.begin);
  return found;
}

const op_run* late_partner(const timeline& all, const op_graph& graph,
                           const op_run& r) {
  const op_run* last = nullptr;
  for (auto op : graph.partners(r.op)) {
    const auto* other = all.find(op, r.step);
    if (other && other->begin > r.begin && other->begin < r.done
        && (!last || other->begin > last->begin))
      last = other;
  }
  return last;
}

namespace {

/// When `r` and all its partners had begun.
std::uint64_t all_had_begun(const timeline& all, const op_graph& graph,
                            const op_run& r) {
  const auto* partner = late_partner(all, graph, r);
  return partner ? partner->begin : r.begin;
}

} // namespace

const op_run* earlier_under_way(const timeline& all, const op_graph& graph,
                                const op_run& r) {
  const op_run* last = nullptr;
  auto after = all_had_begun(all, graph, r);
  for (const auto& d : graph.before(r.op)) {
    if (d.distance > r.step)
      continue;
    const auto* before = all.find(d.op, r.step - d.distance);
    if (before && before != &r && before->done > after
        && before->done < r.done) {
      last = before;
      after = before->done;
    }
  }
  return last;
}

std::uint64_t own_time(const timeline& all, const op_graph& graph,
                       const op_run& r) {
  const auto* earlier = earlier_under_way(all, graph, r);
  return r.done - (earlier ? earlier->done : all_had_begun(all, graph, r));
}

} // namespace troupe::trace
