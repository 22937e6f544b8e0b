// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/timeline.hpp>

#include <troupe/trace/analysis/failed_steps.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

namespace troupe::trace {

namespace {

constexpr std::uint32_t no_run = std::numeric_limits<std::uint32_t>::max();
/// Steps of a run are numbered from 0, also in a trace that begins later.
constexpr std::uint32_t first_steady = 2;
constexpr std::size_t least_steady = 2;

} // namespace

timeline::timeline(std::span<const process_trace> parts) {
  std::size_t handles = 0;
  for (const auto& part : parts) {
    handles = std::max(handles, part.graph.handles.size());
    read(part, static_cast<std::uint16_t>(&part - parts.data()));
  }
  std::erase_if(runs_, [](const op_run& r) { return r.end == 0; });
  const auto begins = [](const op_run& a, const op_run& b) {
    return a.begin < b.begin;
  };
  if (!std::ranges::is_sorted(runs_, begins))
    std::ranges::stable_sort(runs_, begins);
  find_steps(parts);
  index_runs(handles);
  choose_op_steps();
}

void timeline::read(const process_trace& part, std::uint16_t process) {
  std::vector<std::uint32_t> last(part.graph.handles.size(), no_run);
  std::vector<op_run> helping;
  auto workers = part.run.workers;
  // The latest run of an op, if it is of the event's step.
  const auto run_of = [&](const trace_event& e) -> op_run* {
    if (e.from >= last.size() || last[e.from] == no_run)
      return nullptr;
    auto& r = runs_[last[e.from]];
    return r.step == e.step ? &r : nullptr;
  };
  for (const auto& e : part.events) {
    const bool is_ours = e.worker != recorder::no_worker;
    switch (e.kind) {
    case event_kind::run_begin:
      if (e.from >= last.size())
        break;
      last[e.from] = static_cast<std::uint32_t>(runs_.size());
      runs_.push_back({e.time, 0, 0, e.from, e.step, e.worker, process});
      if (is_ours)
        workers = std::max(workers, std::size_t{e.worker} + 1);
      break;
    case event_kind::run_end:
      if (auto* r = run_of(e)) {
        r->end = std::max(e.time, r->begin + 1);
        r->done = std::max(r->done, r->end);
      }
      break;
    case event_kind::completion:
      if (auto* r = run_of(e))
        r->done = std::max(r->done, e.time);
      break;
    case event_kind::help_begin:
      if (!is_ours)
        break;
      if (helping.size() <= e.worker)
        helping.resize(e.worker + std::size_t{1});
      helping[e.worker] = {e.time, 0, 0, e.from, e.step, e.worker, process};
      break;
    case event_kind::help_end:
      if (is_ours && e.worker < helping.size()
          && helping[e.worker].op == e.from) {
        auto help = helping[e.worker];
        help.end = help.done = e.time;
        helps_.push_back(help);
        helping[e.worker].op = no_handle;
      }
      break;
    default: break;
    }
  }
  workers_.push_back(workers);
}

void timeline::find_steps(std::span<const process_trace> parts) {
  struct ends {
    std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
    std::size_t begun = 0, ended = 0; // in how many processes
  };
  std::map<std::uint32_t, ends> found;
  for (const auto& part : parts)
    for (const auto& e : part.events) {
      if (e.kind == event_kind::step_begin) {
        auto& s = found[e.step];
        s.begin = std::min(s.begin, e.time);
        ++s.begun;
      } else if (e.kind == event_kind::step_end) {
        auto& s = found[e.step];
        s.end = std::max(s.end, e.time);
        ++s.ended;
      }
    }
  const auto failed = failed_steps(parts);
  std::uint64_t before = 0;
  for (const auto& [step, s] : found) {
    if (s.begun == parts.size() && s.ended == parts.size() && s.end > s.begin
        && s.end > before && !failed.contains(step))
      steps_.push_back({step, s.begin, s.end, std::max(s.begin, before)});
    before = std::max(before, s.end);
  }
}

void timeline::index_runs(std::size_t handles) {
  first_of_op_.assign(handles + 1, 0);
  for (const auto& r : runs_)
    ++first_of_op_[r.op + std::size_t{1}];
  std::partial_sum(first_of_op_.begin(), first_of_op_.end(),
                   first_of_op_.begin());
  by_op_.resize(runs_.size());
  auto next = first_of_op_;
  for (std::uint32_t i = 0; i < runs_.size(); ++i)
    by_op_[next[runs_[i].op]++] = i;
  by_step_.resize(runs_.size());
  std::iota(by_step_.begin(), by_step_.end(), 0u);
  const auto step_of = [this](std::uint32_t i) { return runs_[i].step; };
  if (!std::ranges::is_sorted(by_step_, {}, step_of))
    std::ranges::stable_sort(by_step_, {}, step_of);
  std::size_t most = 0;
  for (const auto& s : steps_)
    most = std::max(most, runs_of(s.step).size());
  for (auto& s : steps_)
    s.is_whole = most > 0 && runs_of(s.step).size() == most;
}

void timeline::choose_op_steps() {
  const auto take_of = [this](std::span<const step_times> steps) {
    std::ranges::copy_if(steps, std::back_inserter(op_steps_),
                         &step_times::is_whole);
  };
  take_of(steady_steps());
  if (op_steps_.empty())
    take_of(steps_);
}

const step_times* timeline::find_op_step(std::uint32_t step) const {
  const auto found =
    std::ranges::lower_bound(op_steps_, step, {}, &step_times::step);
  return found != op_steps_.end() && found->step == step ? &*found : nullptr;
}

std::span<const step_times> timeline::steady_steps() const noexcept {
  const std::span<const step_times> all = steps_;
  const auto steady =
    std::ranges::lower_bound(all, first_steady, {}, &step_times::step);
  const auto left = static_cast<std::size_t>(all.end() - steady);
  return left < least_steady ? all : all.last(left);
}

std::span<const std::uint32_t> timeline::runs_of(std::uint32_t step) const {
  const auto found = std::ranges::equal_range(
    by_step_, step, {}, [this](std::uint32_t i) { return runs_[i].step; });
  return {found.begin(), found.end()};
}

std::span<const std::uint32_t> timeline::runs_of_op(handle_id op) const {
  if (op + std::size_t{1} >= first_of_op_.size())
    return {};
  return std::span{by_op_}.subspan(first_of_op_[op],
                                   first_of_op_[op + 1] - first_of_op_[op]);
}

const op_run* timeline::find(handle_id op, std::uint32_t step) const {
  const auto of_op = runs_of_op(op);
  const auto at = std::ranges::lower_bound(
    of_op, step, {}, [this](std::uint32_t i) { return runs_[i].step; });
  return at != of_op.end() && runs_[*at].step == step ? &runs_[*at] : nullptr;
}

std::vector<double> typical_step_times(const timeline& all) {
  const auto steps = all.steady_steps();
  std::size_t in_flight = 1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::size_t before = 0;
    while (before < i && steps[i - before - 1].end > steps[i].begin)
      ++before;
    in_flight = std::max(in_flight, before + 1);
  }
  std::vector<double> times;
  for (std::size_t i = 0; i + in_flight <= steps.size(); i += in_flight) {
    double sum = 0;
    for (const auto& step : steps.subspan(i, in_flight))
      sum += static_cast<double>(step.ns());
    times.push_back(sum / static_cast<double>(in_flight));
  }
  return times;
}

std::vector<interval> union_of(std::vector<interval> all) {
  std::ranges::sort(all, {}, &interval::begin);
  std::vector<interval> joined;
  for (const auto& i : all) {
    if (i.end <= i.begin)
      continue;
    if (!joined.empty() && i.begin <= joined.back().end)
      joined.back().end = std::max(joined.back().end, i.end);
    else
      joined.push_back(i);
  }
  return joined;
}

std::uint64_t length_of(std::span<const interval> joined) {
  std::uint64_t sum = 0;
  for (const auto& i : joined)
    sum += i.end - i.begin;
  return sum;
}

std::vector<interval> shared_of(std::span<const interval> a,
                                std::span<const interval> b) {
  std::vector<interval> shared;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const auto begin = std::max(x->begin, y->begin);
    const auto end = std::min(x->end, y->end);
    if (end > begin)
      shared.push_back({begin, end});
    if (x->end < y->end)
      ++x;
    else
      ++y;
  }
  return shared;
}

std::uint64_t shared_length(std::span<const interval> a,
                            std::span<const interval> b) {
  return length_of(shared_of(a, b));
}

} // namespace troupe::trace
