// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/critical_path.hpp>

#include <troupe/trace/analysis/readiness.hpp>

#include <algorithm>
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

class path_walk {
public:
  path_walk(const timeline& all, const op_graph& graph, const step_times& step)
    : all_(all), graph_(graph), step_(step), now_(step.end),
      is_passed_(all.runs().size()) {
    path_.step = step.step;
    for (const auto& r : all.runs())
      if (r.end > step.after && r.begin < step.end)
        by_end_.push_back(&r);
    std::ranges::stable_sort(by_end_, {}, &op_run::end);
  }

  critical_path walk() {
    const auto* r = last_run();
    add(path_kind::ending, r ? r->done : step_.after, nullptr);
    while (r && now_ > step_.after && !passes_again(*r)) {
      const auto kind =
        graph_.merges(r->op) ? path_kind::merging : path_kind::compute;
      // An op that only kept a worker busy may not be complete by now. What it
      // still waited for, in a later step perhaps, held up nobody on the path.
      const auto* earlier = earlier_under_way(all_, graph_, *r);
      if (earlier && earlier->done < now_) {
        add(kind, earlier->done, r);
        r = earlier;
        continue;
      }
      const auto* partner = late_partner(all_, graph_, *r);
      if (partner && partner->begin < now_) {
        add(kind, partner->begin, r);
        r = partner;
      } else {
        add(kind, r->begin, r);
      }
      const auto ready = ready_at(all_, graph_, *r);
      if (const auto* other = run_in_the_way(*r, ready.time)) {
        add(path_kind::worker, other->end, r);
        r = other;
      } else {
        add(path_kind::worker, ready.time, r);
        r = ready.by;
      }
    }
    // What is left cannot be explained: ops without a recorded run.
    add(path_kind::worker, step_.after, nullptr);
    std::ranges::reverse(path_.parts);
    return std::move(path_);
  }

private:
  const op_run* last_run() const {
    const op_run* last = nullptr;
    for (auto i : all_.runs_of(step_.step))
      if (const auto& r = all_.runs()[i]; !last || r.done > last->done)
        last = &r;
    return last;
  }
  /// In damaged traces, runs can hold up each other.
  bool passes_again(const op_run& r) {
    auto passed = is_passed_[static_cast<std::size_t>(&r - all_.runs().data())];
    const bool before = passed;
    passed = true;
    return before;
  }
  /// What the worker of `r` ran last while `r` was ready; null if nothing.
  const op_run* run_in_the_way(const op_run& r, std::uint64_t ready) const {
    auto at = std::ranges::upper_bound(by_end_, r.begin, {}, &op_run::end);
    while (at != by_end_.begin() && (*--at)->end > ready)
      if ((*at)->process == r.process && (*at)->worker == r.worker)
        return *at;
    return nullptr;
  }
  /// Adds the part from `begin` to where the walk is.
  void add(path_kind kind, std::uint64_t begin, const op_run* r) {
    begin = std::max(begin, step_.after);
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
  std::vector<const op_run*> by_end_; // those that touch the step
  std::vector<bool> is_passed_;       // by run
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
  const auto middle =
    steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::ranges::nth_element(steps, middle, {},
                           [](const step_times* s) { return s->ns(); });
  return *middle;
}

} // namespace troupe::trace
