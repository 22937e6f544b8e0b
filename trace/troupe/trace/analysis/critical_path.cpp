// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/critical_path.hpp>

#include <troupe/trace/analysis/readiness.hpp>
#include <troupe/trace/analysis/statistics.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::trace {

std::string_view to_string(path_kind kind) noexcept {
  switch (kind) {
  case path_kind::compute: return "compute";
  case path_kind::merging: return "merging";
  case path_kind::worker: return "waiting for a worker";
  case path_kind::ending: return "ending";
  }
  return "?";
}

std::uint64_t critical_path::total() const {
  std::uint64_t sum = 0;
  for (const auto& p : parts)
    sum += p.end - p.begin;
  return sum;
}

std::array<std::uint64_t, path_kinds> critical_path::by_kind() const {
  std::array<std::uint64_t, path_kinds> sums{};
  for (const auto& p : parts)
    sums[static_cast<std::size_t>(p.kind)] += p.end - p.begin;
  return sums;
}

namespace {

/// A stream of a device.
using stream_name = std::pair<std::uint32_t, std::string_view>;

stream_name stream_of(const op_graph& graph, const op_run& r) {
  const auto& h = graph.graph().handles[r.op];
  return {h.device, h.stream};
}

class path_walk {
public:
  path_walk(const timeline& all, const op_graph& graph, const step_times& step)
    : all_(all), graph_(graph), step_(step), now_(step.end),
      passed_at_(all.runs().size(), std::numeric_limits<std::uint64_t>::max()) {
    path_.step = step.step;
    std::map<stream_name, std::uint64_t> busy_until;
    for (const auto& r : all.runs()) {
      if (r.end <= step.after || r.begin >= step.end)
        continue;
      by_end_.push_back(&r);
      const auto stream = stream_of(graph, r);
      auto& until = busy_until[stream];
      if (r.begin < until)
        wide_.insert(stream);
      until = std::max(until, r.end);
    }
    std::ranges::stable_sort(by_end_, {}, &op_run::end);
  }

  critical_path walk() {
    const auto* r = last_run();
    add(path_kind::ending, r ? r->done : step_.after, nullptr);
    const op_run* last = nullptr;
    while (now_ > step_.after) {
      if (!r || now_ <= limit() || passes_again(*r)) {
        if (held_up_.empty())
          break;
        const auto held = held_up_.back();
        add(path_kind::worker, held.could_begin.time, held.run);
        held_up_.pop_back();
        r = held.could_begin.by;
        continue;
      }
      last = r;
      r = before(*r);
    }
    // What is left cannot be explained: ops without a recorded run.
    add(path_kind::worker, step_.after, last);
    std::ranges::reverse(path_.parts);
    return std::move(path_);
  }

private:
  /// A run whose worker ran others when it could have begun.
  struct held_run {
    const op_run* run;
    readiness could_begin;
  };

  const op_run* last_run() const {
    const op_run* last = nullptr;
    for (auto i : all_.runs_of(step_.step))
      if (const auto& r = all_.runs()[i]; !last || r.done > last->done)
        last = &r;
    return last;
  }
  /// In damaged traces, runs can hold up each other.
  bool passes_again(const op_run& r) {
    return std::exchange(passed_at_[all_.index_of(r)], now_) == now_;
  }
  /// Adds what `r` did, and its wait. Returns where the path goes on; null: at
  /// the begin of its step.
  const op_run* before(const op_run& r) {
    const auto kind =
      graph_.merges(r.op) ? path_kind::merging : path_kind::compute;
    // An op that only kept a worker busy may not be complete by now. What it
    // still waited for, in a later step perhaps, held up nobody on the path.
    const auto* earlier = earlier_under_way(all_, graph_, r);
    if (earlier && earlier->done < now_) {
      add(kind, earlier->done, &r);
      return earlier;
    }
    const auto* partner = late_partner(all_, graph_, r);
    if (partner && partner->begin < now_) {
      add(kind, partner->begin, &r);
      return partner;
    }
    add(kind, r.begin, &r);
    return held_up_by(r);
  }
  const op_run* held_up_by(const op_run& r) {
    const auto could_begin = when_stream_was_free(r);
    const auto is_of_worker = [&](const op_run& other) {
      return other.process == r.process && other.worker == r.worker;
    };
    if (const auto* other = last_in(r, could_begin.time, is_of_worker)) {
      add(path_kind::worker, other->end, &r);
      // What the worker ran is why only since `r` could have begun.
      if (could_begin.time > limit())
        held_up_.push_back({&r, could_begin});
      return other;
    }
    add(path_kind::worker, could_begin.time, &r);
    return could_begin.by;
  }
  /// When `r` had its last message and its stream had ended what it ran.
  readiness when_stream_was_free(const op_run& r) const {
    auto found = ready_at(all_, graph_, r);
    const auto stream = stream_of(graph_, r);
    if (wide_.contains(stream))
      return found;
    const auto is_of_stream = [&](const op_run& other) {
      return stream_of(graph_, other) == stream;
    };
    if (const auto* other = last_in(r, found.time, is_of_stream))
      found = {other->end, other};
    return found;
  }
  /// Of the runs that are meant, the last one that ended after `since` and not
  /// after the begin of `r`; null if there is none.
  const op_run* last_in(const op_run& r, std::uint64_t since,
                        const auto& is_meant) const {
    auto at = std::ranges::upper_bound(by_end_, r.begin, {}, &op_run::end);
    while (at != by_end_.begin() && (*--at)->end > since)
      if (is_meant(**at))
        return *at;
    return nullptr;
  }
  /// Where the walk leaves what it follows now.
  std::uint64_t limit() const {
    return held_up_.empty() ? step_.after : held_up_.back().could_begin.time;
  }
  /// Adds the part from `begin`, or from the limit, to where the walk is.
  void add(path_kind kind, std::uint64_t begin, const op_run* r) {
    begin = std::max({begin, limit(), step_.after});
    if (begin >= now_)
      return;
    path_part part{kind, begin, now_};
    if (r) {
      part.op = r->op;
      part.worker = r->worker;
      part.process = r->process;
    }
    path_.parts.push_back(part);
    now_ = begin;
  }

  const timeline& all_;
  const op_graph& graph_;
  const step_times& step_;
  std::uint64_t now_;
  std::vector<const op_run*> by_end_;    // those that touch the step
  std::set<stream_name> wide_;           // that ran several ops at once
  std::vector<held_run> held_up_;        // the latest that could begin last
  std::vector<std::uint64_t> passed_at_; // by run: where the walk was then
  critical_path path_;
};

} // namespace

critical_path find_critical_path(const timeline& all, const op_graph& graph,
                                 const step_times& step) {
  return path_walk{all, graph, step}.walk();
}

const step_times* slowest_step(const timeline& all) {
  const step_times* slowest = nullptr;
  for (const auto& s : all.steady_steps())
    if (!slowest
        || std::pair{s.is_whole, s.ns()}
             > std::pair{slowest->is_whole, slowest->ns()})
      slowest = &s;
  return slowest;
}

const step_times* median_step(const timeline& all) {
  std::vector<const step_times*> steps;
  const auto wanted =
    all.op_steps().empty() ? all.steady_steps() : all.op_steps();
  for (const auto& s : wanted)
    steps.push_back(&s);
  if (steps.empty())
    return nullptr;
  // Where steps end in pairs, half of them did so right behind another one.
  std::vector<double> times;
  for (const auto* s : steps)
    times.push_back(static_cast<double>(s->ns()));
  const auto least = quantile(std::move(times), 0.75) / 10;
  std::erase_if(steps, [least](const step_times* s) {
    return static_cast<double>(s->ns()) < least;
  });
  const auto middle =
    steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::ranges::nth_element(steps, middle, {},
                           [](const step_times* s) { return s->ns(); });
  return *middle;
}

} // namespace troupe::trace
