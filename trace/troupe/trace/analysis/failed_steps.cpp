// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/failed_steps.hpp>

#include <algorithm>
#include <map>
#include <optional>

namespace troupe::trace {

std::set<std::uint32_t> failed_steps(std::span<const process_trace> parts) {
  std::set<std::uint32_t> found;
  for (const auto& part : parts)
    for (const auto& e : part.events)
      if (e.kind == event_kind::failure
          || (e.kind == event_kind::step_end && e.amount != 0))
        found.insert(e.step);
  return found;
}

namespace {

/// Begin and end of a failed step, in all processes.
struct failed_ends {
  std::optional<std::uint64_t> begin;
  std::uint64_t end = 0;
  bool has_failure = false;
};

std::map<std::uint32_t, failed_ends>
ends_of(std::span<const process_trace> parts,
        const std::set<std::uint32_t>& failed) {
  std::map<std::uint32_t, failed_ends> found;
  for (const auto& part : parts)
    for (const auto& e : part.events) {
      if (e.kind > event_kind::failure || !failed.contains(e.step))
        continue;
      auto& ends = found[e.step];
      if (e.kind == event_kind::step_begin)
        ends.begin = std::min(ends.begin.value_or(e.time), e.time);
      else if (e.kind == event_kind::step_end)
        ends.end = std::max(ends.end, e.time);
      ends.has_failure |= e.kind == event_kind::failure;
    }
  return found;
}

/// Processes whose part in what `r` waits for had not begun when `r` ended.
std::vector<std::size_t> missing_for(const op_run& r, const timeline& all,
                                     const op_graph& graph) {
  std::vector<std::size_t> missing;
  for (auto partner : graph.partners(r.op)) {
    const auto* other = all.find(partner, r.step);
    if (!other || other->begin >= r.done)
      missing.push_back(graph.process_of(partner));
  }
  std::ranges::sort(missing);
  const auto same = std::ranges::unique(missing);
  missing.erase(same.begin(), same.end());
  return missing;
}

void find_longest(failed_step& in, const timeline& all, const op_graph& graph) {
  for (auto i : all.runs_of(in.step)) {
    const auto& r = all.runs()[i];
    const bool waits = !graph.partners(r.op).empty();
    const auto ns = r.done - r.begin;
    if (std::pair{waits, ns} <= std::pair{in.has_waited, in.longest_ns})
      continue;
    in.longest = r.op;
    in.longest_ns = ns;
    in.has_waited = waits;
    in.missing = missing_for(r, all, graph);
  }
}

ended_trace end_of(const process_trace& part, std::size_t process) {
  ended_trace found;
  found.process = process;
  std::set<std::uint32_t> open;
  for (const auto& e : part.events)
    switch (e.kind) {
    case event_kind::step_begin:
      open.insert(e.step);
      found.step = std::max(found.step.value_or(e.step), e.step);
      break;
    case event_kind::step_end: open.erase(e.step); break;
    case event_kind::run_begin:
    case event_kind::run_end:
      found.op = e.from;
      found.has_op_ended = e.kind == event_kind::run_end;
      break;
    default: break;
    }
  found.is_within = !open.empty();
  if (found.is_within)
    found.step = *open.begin();
  return found;
}

} // namespace

std::vector<failed_step> find_failed_steps(std::span<const process_trace> parts,
                                           const timeline& all,
                                           const op_graph& graph) {
  std::vector<failed_step> found;
  for (const auto& [step, ends] : ends_of(parts, failed_steps(parts))) {
    if (!ends.begin)
      continue;
    auto& made = found.emplace_back();
    made.step = step;
    made.ns = std::max(ends.end, *ends.begin) - *ends.begin;
    made.was_cancelled = !ends.has_failure;
    find_longest(made, all, graph);
  }
  return found;
}

std::vector<ended_trace>
find_ended_traces(std::span<const process_trace> parts) {
  std::vector<ended_trace> found;
  if (std::ranges::any_of(parts, &process_trace::is_complete))
    for (std::size_t p = 0; p < parts.size(); ++p)
      if (!parts[p].is_complete)
        found.push_back(end_of(parts[p], p));
  return found;
}

} // namespace troupe::trace
