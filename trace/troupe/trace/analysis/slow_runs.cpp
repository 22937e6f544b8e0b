// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/slow_runs.hpp>

#include <troupe/trace/analysis/statistics.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace troupe::trace {

std::string_view to_string(slow_cause cause) noexcept {
  switch (cause) {
  case slow_cause::unknown: return "unknown";
  case slow_cause::preempted: return "preempted";
  case slow_cause::throttled: return "throttled";
  }
  return "?";
}

namespace {

constexpr double least_factor = 2, least_excess_ns = 1e6;

/// Time without a core between two readings.
struct reading_span {
  std::uint64_t ns = 0, length = 0;
};

/// What the system said about the cores, by worker; of the machine at
/// `no_handle`. Ordered by time.
class core_readings {
public:
  explicit core_readings(const process_trace& part) {
    for (const auto& e : part.events)
      if (e.kind == event_kind::core_wait)
        found_[e.from].push_back({e.time, e.amount});
  }
  /// Time without a core between the readings around an interval.
  reading_span around(handle_id whom, const interval& during) const {
    const auto found = found_.find(whom);
    if (found == found_.end())
      return {};
    const auto& all = found->second;
    auto r = std::ranges::upper_bound(all, during.begin, {}, &reading::time);
    // The first reading is since a time that the trace does not have.
    const auto begin = r == all.begin() ? during.begin : std::prev(r)->time;
    reading_span sum;
    for (; r != all.end(); ++r) {
      sum.ns += r->ns;
      sum.length = r->time - begin;
      if (r->time >= during.end)
        break;
    }
    sum.length = std::max(sum.length, sum.ns);
    return sum;
  }

private:
  struct reading {
    std::uint64_t time = 0, ns = 0;
  };
  std::map<handle_id, std::vector<reading>> found_;
};

std::uint64_t length(const op_run& r) {
  return r.done - r.begin;
}

class slow_run_search {
public:
  slow_run_search(const timeline& all, const op_graph& graph,
                  const step_times* only)
    : all_(all), graph_(graph), only_(only) {}

  slow_run_list find(std::span<const process_trace> parts) {
    for (handle_id op = 0; op < graph_.graph().handles.size(); ++op)
      if (graph_.is_op(op) && !graph_.merges(op))
        look_at(op);
    std::ranges::stable_sort(found_, std::ranges::greater{},
                             [](const slow_run& r) { return r.excess_ns(); });
    slow_run_list made;
    made.count = found_.size();
    for (const auto& r : found_)
      made.excess_ns += r.excess_ns();
    if (found_.size() > most_slow_runs)
      found_.resize(most_slow_runs);
    find_helpers();
    std::vector<core_readings> readings;
    for (const auto& part : parts)
      readings.emplace_back(part);
    for (auto& r : found_)
      explain(r, readings[r.process]);
    made.worst = std::move(found_);
    return made;
  }

private:
  using run_key = std::pair<handle_id, std::uint32_t>;

  void look_at(handle_id op) {
    times_.clear();
    for (auto i : all_.runs_of_op(op))
      if (const auto& r = all_.runs()[i]; all_.find_op_step(r.step))
        times_.push_back(static_cast<double>(length(r)));
    constexpr std::size_t least_runs = 3; // for a median to mean something
    if (times_.size() < least_runs)
      return;
    const auto median = quantile(times_, 0.5);
    for (auto i : all_.runs_of_op(op)) {
      const auto& r = all_.runs()[i];
      const auto counts =
        only_ ? r.step == only_->step : all_.find_op_step(r.step) != nullptr;
      const auto ns = static_cast<double>(length(r));
      if (counts && ns >= least_factor * median
          && ns - median >= least_excess_ns)
        found_.push_back({op, r.step, r.process, r.worker, length(r), median});
    }
  }

  void find_helpers() {
    for (const auto& r : found_)
      helpers_[{r.op, r.step}];
    for (const auto& h : all_.helps())
      if (const auto of = helpers_.find({h.op, h.step}); of != helpers_.end())
        of->second.push_back(h.worker);
  }

  void explain(slow_run& r, const core_readings& readings) const {
    const auto* run = all_.find(r.op, r.step);
    const interval during{run->begin, run->done};
    auto worker = r.worker;
    auto waited = readings.around(worker, during);
    for (auto helper : helpers_.at({r.op, r.step}))
      if (const auto its = readings.around(helper, during);
          its.ns > waited.ns) {
        waited = its;
        worker = helper;
      }
    const auto explains = [&r](const reading_span& s) {
      return 2 * static_cast<double>(s.ns) >= r.excess_ns();
    };
    if (const auto stolen = readings.around(no_handle, during);
        explains(waited)) {
      r.cause = slow_cause::preempted;
      r.worker = worker;
      r.without_core_ns = waited.ns;
      r.around_ns = waited.length;
    } else if (explains(stolen)) {
      r.cause = slow_cause::throttled;
      r.without_core_ns = stolen.ns;
      r.around_ns = stolen.length;
    }
  }

  const timeline& all_;
  const op_graph& graph_;
  const step_times* only_;
  std::vector<double> times_; // of one op, kept to reuse its memory
  std::vector<slow_run> found_;
  std::map<run_key, std::vector<std::uint16_t>> helpers_;
};

} // namespace

slow_run_list find_slow_runs(std::span<const process_trace> parts,
                             const timeline& all, const op_graph& graph,
                             const step_times* only) {
  return slow_run_search{all, graph, only}.find(parts);
}

} // namespace troupe::trace
