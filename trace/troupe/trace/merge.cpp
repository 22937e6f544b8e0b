// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/merge.hpp>

#include <troupe/base/error.hpp>
#include <troupe/trace/analysis/failed_steps.hpp>
#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/parcels.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

namespace troupe::trace {

namespace {

/// No bound: halved, so that sums do not overflow.
constexpr auto unbounded = std::numeric_limits<std::int64_t>::max() / 4;

[[noreturn]] void refuse(const process_trace& a, const process_trace& b,
                         const std::string& why) {
  const auto files = a.file.empty() ? "" : a.file + ", " + b.file + ": ";
  throw error(errc::invalid_argument,
              files + "the traces are not of one run: " + why
                + " (troupe trace diff compares two runs)");
}

bool have_same_graph(const graph_info& a, const graph_info& b) {
  return a.devices == b.devices
         && std::ranges::equal(a.handles, b.handles, {}, &handle_info::name,
                               &handle_info::name);
}

/// By the clock of the host, when the last event was.
std::int64_t end_of(const process_trace& t) {
  return t.run.begin_unix_ns + static_cast<std::int64_t>(t.events.back().time);
}

/// Processes of one run wait for each other. If one has ended well before
/// another one begins, they are of two runs: one that only sends can end a
/// moment earlier. The clocks of two hosts can differ by more than a run takes,
/// so they say nothing.
void require_same_time(const process_trace& a, const process_trace& b) {
  if (a.run.host.empty() || a.run.host != b.run.host || a.events.empty()
      || b.events.empty())
    return;
  const auto apart =
    std::max(b.run.begin_unix_ns - end_of(a), a.run.begin_unix_ns - end_of(b));
  constexpr std::int64_t moment_ns = 100'000'000;
  if (apart > moment_ns)
    refuse(a, b, "one ends before the other begins");
}

/// Of a file without a job, nobody knows.
void require_same_job(const process_trace& a, const process_trace& b) {
  if (!a.run.job.empty() && !b.run.job.empty() && a.run.job != b.run.job)
    refuse(a, b,
           "they are of two jobs, or of two "
           "epochs of an elastic one");
}

void require_one_run(const std::vector<process_trace>& parts) {
  const auto& first = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto& part = parts[i];
    if (part.run.process == parts[i - 1].run.process)
      refuse(parts[i - 1], part,
             "both are of process " + std::to_string(part.run.process));
    for (std::size_t other = 0; other < i; ++other)
      require_same_job(parts[other], part);
    if (!have_same_graph(part.graph, first.graph))
      refuse(first, part,
             "process " + std::to_string(part.run.process)
               + " ran another graph than process "
               + std::to_string(first.run.process));
    for (std::size_t other = 0; other < i; ++other)
      require_same_time(parts[other], part);
  }
}

using step_set = std::set<std::uint32_t>;

/// The steps whose ops did not wait for each other as they should, or that were
/// under way when a trace ended.
step_set unreliable_steps(const std::vector<process_trace>& parts) {
  auto found = failed_steps(parts);
  for (const auto& part : parts) {
    step_set under_way;
    for (const auto& e : part.events)
      if (e.kind == event_kind::step_begin)
        under_way.insert(e.step);
      else if (e.kind == event_kind::step_end)
        under_way.erase(e.step);
    found.merge(under_way);
  }
  return found;
}

/// When an op ran that waits for others of another process, by the host's
/// clock.
struct call {
  std::uint32_t step = 0;
  std::int64_t begin = 0;
  std::int64_t done = 0;    ///< 0: unknown
  bool is_complete = false; ///< a launch that was pending
  bool is_merging = false;  ///< no end of its merge was recorded
};

/// The calls of the ops that `op_graph::partners` relates, by op.
class call_log {
public:
  call_log(const std::vector<process_trace>& parts, const op_graph& graph,
           const step_set& ignored)
    : calls_(graph.graph().handles.size()), is_related_(calls_.size()) {
    for (handle_id op = 0; op < calls_.size(); ++op)
      for (auto partner : graph.partners(op))
        is_related_[op] = is_related_[partner] = true;
    for (const auto& part : parts)
      read(part, ignored);
    for (auto& calls : calls_)
      forget_cut_ends(calls);
  }
  const std::vector<call>& of(handle_id op) const { return calls_[op]; }

private:
  void read(const process_trace& part, const step_set& ignored) {
    const auto begin = part.run.begin_unix_ns;
    for (const auto& e : part.events) {
      if (e.from >= calls_.size() || !is_related_[e.from]
          || ignored.contains(e.step))
        continue;
      const auto time = begin + static_cast<std::int64_t>(e.time);
      auto& log = calls_[e.from];
      if (e.kind == event_kind::run_begin)
        log.push_back({e.step, time});
      else if (!log.empty() && log.back().step == e.step)
        note(e.kind, time, log.back());
    }
  }
  static void note(event_kind kind, std::int64_t time, call& of) {
    if (kind == event_kind::merge_begin)
      of.is_merging = true;
    else if (kind == event_kind::merge_end)
      of.is_merging = false;
    if (kind == event_kind::run_end || kind == event_kind::completion)
      of.done = time;
    of.is_complete |= kind == event_kind::completion;
  }
  /// Of a launch that was pending, the trace can have the end of the launch and
  /// lack that of the call.
  static void forget_cut_ends(std::vector<call>& calls) {
    const bool are_pending = std::ranges::any_of(calls, &call::is_complete);
    for (auto& c : calls)
      if (c.is_merging || (are_pending && !c.is_complete))
        c.done = 0;
  }

  std::vector<std::vector<call>> calls_;
  std::vector<bool> is_related_;
};

/// Bounds of differences: offset of b - offset of a <= most(a, b).
class offset_bounds {
public:
  explicit offset_bounds(std::size_t count)
    : count_(count), most_(count * count, unbounded) {
    for (std::size_t i = 0; i < count; ++i)
      most_[i * count + i] = 0;
  }
  std::int64_t& most(std::size_t a, std::size_t b) {
    return most_[a * count_ + b];
  }
  void bound(std::size_t a, std::size_t b, std::int64_t by) {
    most(a, b) = std::min(most(a, b), by);
  }
  /// Draws all conclusions: shortest paths, by Floyd and Warshall. Returns by
  /// how much bounds contradict each other.
  std::int64_t conclude() {
    for (std::size_t over = 0; over < count_; ++over)
      for (std::size_t a = 0; a < count_; ++a)
        for (std::size_t b = 0; b < count_; ++b)
          if (most(a, over) < unbounded && most(over, b) < unbounded)
            bound(a, b, most(a, over) + most(over, b));
    std::int64_t worst = 0;
    for (std::size_t i = 0; i < count_; ++i)
      worst = std::max(worst, -most(i, i));
    return worst;
  }

private:
  std::size_t count_;
  std::vector<std::int64_t> most_;
};

/// Adds what the calls of `op` and of a partner in another process say: `op`
/// is not done before the partner has begun.
std::size_t add_bounds(const std::vector<call>& calls,
                       const std::vector<call>& partners, std::size_t process,
                       std::size_t of_partner, offset_bounds& bounds) {
  std::size_t count = 0;
  auto partner = partners.begin();
  for (const auto& c : calls) {
    while (partner != partners.end() && partner->step < c.step)
      ++partner;
    if (partner == partners.end())
      break;
    if (partner->step != c.step || c.done == 0)
      continue;
    bounds.bound(process, of_partner, c.done - partner->begin);
    ++count;
  }
  return count;
}

/// Adds what parcels say: none arrives before it was sent. Their times lie
/// closer to each other than those of the ops around them.
std::size_t add_parcels(const std::vector<process_trace>& parts,
                        const op_graph& graph, const step_set& ignored,
                        offset_bounds& bounds) {
  const auto on_host = [&](const parcel_end& end) {
    return parts[end.trace].run.begin_unix_ns
           + static_cast<std::int64_t>(end.time);
  };
  std::size_t count = 0;
  const parcel_list parcels{parts, graph};
  for (const auto& p : parcels.all()) {
    if (p.kind != parcel_kind::value || !p.is_whole()
        || ignored.contains(p.step) || p.sent->trace == p.arrived->trace)
      continue;
    bounds.bound(p.arrived->trace, p.sent->trace,
                 on_host(*p.arrived) - on_host(*p.sent));
    ++count;
  }
  return count;
}

/// The middle of what the bounds allow for process `p`, seen from the first.
clock_offset choose(std::size_t p, offset_bounds& bounds) {
  const auto most = bounds.most(0, p);
  const auto back = bounds.most(p, 0);
  if (most < unbounded && back < unbounded)
    return {(most - back) / 2, std::max<std::int64_t>((most + back) / 2, 0)};
  // One side only: as near to the hosts' clocks as possible.
  if (most < unbounded)
    return {std::min<std::int64_t>(0, most), -1};
  if (back < unbounded)
    return {std::max<std::int64_t>(0, -back), -1};
  return {0, -1};
}

void shift(std::vector<process_trace>& parts, const clock_merge& found) {
  const auto begin_of = [&](std::size_t i) {
    return parts[i].run.begin_unix_ns + found.offsets[i].offset_ns;
  };
  auto first = begin_of(0);
  for (std::size_t i = 1; i < parts.size(); ++i)
    first = std::min(first, begin_of(i));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto by = begin_of(i) - first;
    for (auto& e : parts[i].events)
      e.time += static_cast<std::uint64_t>(by);
    for (auto& p : parts[i].phases) {
      p.begin_ns += by;
      p.end_ns += by;
    }
    for (auto& a : parts[i].actors)
      if (a.end_ns)
        *a.end_ns += by;
    parts[i].run.begin_unix_ns = first;
  }
}

} // namespace

clock_merge merge_clocks(std::vector<process_trace>& parts) {
  clock_merge found;
  found.offsets.resize(parts.size());
  if (parts.size() < 2)
    return found;
  std::ranges::sort(parts, {},
                    [](const process_trace& t) { return t.run.process; });
  require_one_run(parts);
  const op_graph graph{parts.front().graph};
  const auto ignored = unreliable_steps(parts);
  const call_log calls{parts, graph, ignored};
  offset_bounds bounds{parts.size()};
  const auto place_of = [&](handle_id op) {
    const auto at =
      std::ranges::find(parts, graph.process_of(op),
                        [](const process_trace& t) { return t.run.process; });
    return static_cast<std::size_t>(at - parts.begin());
  };
  for (handle_id op = 0; op < graph.graph().handles.size(); ++op)
    for (auto partner : graph.partners(op)) {
      const auto here = place_of(op), there = place_of(partner);
      if (here != there && here < parts.size() && there < parts.size())
        found.constraints +=
          add_bounds(calls.of(op), calls.of(partner), here, there, bounds);
    }
  found.constraints += add_parcels(parts, graph, ignored, bounds);
  found.contradiction_ns = bounds.conclude();
  for (std::size_t p = 1; p < parts.size(); ++p) {
    found.offsets[p] = choose(p, bounds);
    if (found.contradiction_ns > 0) {
      found.offsets[p].uncertainty_ns = -1;
      continue;
    }
    bounds.bound(0, p, found.offsets[p].offset_ns);
    bounds.bound(p, 0, -found.offsets[p].offset_ns);
    bounds.conclude(); // the choice bounds the other processes
  }
  shift(parts, found);
  return found;
}

} // namespace troupe::trace
