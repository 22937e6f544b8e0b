// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/summary.hpp>

#include <troupe/trace/analysis/statistics.hpp>

#include <algorithm>
#include <map>

namespace troupe::trace {

namespace {

step_statistics step_statistics_of(const timeline& all) {
  step_statistics s;
  s.count = all.steps().size();
  const auto steady = all.steady_steps();
  s.counted = steady.size();
  if (steady.empty())
    return s;
  std::vector<double> times;
  std::vector<interval> under_way;
  for (const auto& step : steady) {
    times.push_back(static_cast<double>(step.ns()));
    under_way.push_back({step.begin, step.end});
  }
  s.mean_ns = mean(times);
  const auto typical = typical_step_times(all);
  s.median_ns = quantile(typical, 0.5);
  s.p10_ns = quantile(typical, 0.1);
  s.p90_ns = quantile(typical, 0.9);
  const auto wall = steady.back().end - steady.front().begin;
  s.between = 1
              - static_cast<double>(length_of(union_of(std::move(under_way))))
                  / static_cast<double>(wall);
  return s;
}

/// Sums over the time of the steps whose ops were recorded.
class time_sums {
public:
  time_sums(const timeline& all, const op_graph& graph)
    : all_(all), graph_(graph), steps_(all.op_steps()) {
    std::vector<interval> times;
    for (const auto& step : steps_)
      times.push_back({step.after, step.end});
    counted_ = union_of(std::move(times));
    for (std::size_t p = 0; p < all.processes(); ++p)
      busy_.emplace_back(all.workers(p));
    compute_.resize(all.processes());
    merge_.resize(all.processes());
    for (const auto& r : all.runs())
      add(r);
    for (const auto& r : all.helps())
      add_help(r);
  }

  std::vector<type_time> types() const;
  std::vector<worker_idle> idle_workers();
  std::vector<stream_idle> idle_streams();
  std::vector<merge_overlap> overlap();

private:
  void add(const op_run& r) {
    add_busy(r);
    if (all_.find_op_step(r.step)) {
      auto& t = times_[graph_.graph().handles[r.op].type];
      ++t.count;
      t.ns += r.end - r.begin;
    }
    const bool merges = graph_.merges(r.op);
    auto& of_kind = merges ? merge_ : compute_;
    add_interval(of_kind[r.process], {r.begin, r.done});
    const auto& h = graph_.graph().handles[r.op];
    add_interval(streams_[{h.device, h.stream}], {r.begin, r.done});
  }
  void add_help(const op_run& r) {
    add_busy(r);
    if (graph_.is_op(r.op) && all_.find_op_step(r.step))
      times_[graph_.graph().handles[r.op].type].ns += r.end - r.begin;
  }
  void add_busy(const op_run& r) {
    auto& workers = busy_[r.process];
    if (r.worker < workers.size())
      add_interval(workers[r.worker], {r.begin, r.end});
  }
  /// Joins what follows on the last interval: most runs of a worker do not.
  static void add_interval(std::vector<interval>& all, interval i) {
    if (i.end <= i.begin)
      return;
    if (!all.empty() && i.begin >= all.back().begin
        && i.begin <= all.back().end)
      all.back().end = std::max(all.back().end, i.end);
    else
      all.push_back(i);
  }
  /// The part of the times that counts.
  std::uint64_t counted_length(std::vector<interval> times) const {
    return shared_length(union_of(std::move(times)), counted_);
  }
  double per_step(std::uint64_t ns) const {
    return static_cast<double>(ns) / static_cast<double>(steps_.size());
  }

  struct type_sum {
    std::uint64_t count = 0, ns = 0;
  };

  const timeline& all_;
  const op_graph& graph_;
  std::span<const step_times> steps_;
  std::vector<interval> counted_; // of the steps, as a union
  std::map<std::string_view, type_sum> times_;
  std::vector<std::vector<std::vector<interval>>> busy_; // process, worker
  std::vector<std::vector<interval>> compute_, merge_;   // process
  std::map<std::pair<std::uint32_t, std::string_view>, std::vector<interval>>
    streams_; // device, name
};

std::vector<type_time> time_sums::types() const {
  std::uint64_t total = 0;
  for (const auto& [type, sum] : times_)
    total += sum.ns;
  std::vector<type_time> made;
  for (const auto& [type, sum] : times_)
    made.push_back({std::string{type}, per_step(sum.count), per_step(sum.ns),
                    total > 0
                      ? static_cast<double>(sum.ns) / static_cast<double>(total)
                      : 0});
  std::ranges::stable_sort(made, std::ranges::greater{}, &type_time::self_ns);
  return made;
}

std::vector<worker_idle> time_sums::idle_workers() {
  std::vector<worker_idle> made;
  if (steps_.empty())
    return made;
  const auto wall = static_cast<double>(length_of(counted_));
  for (std::size_t p = 0; p < busy_.size(); ++p)
    for (std::size_t w = 0; w < busy_[p].size(); ++w) {
      const auto busy = counted_length(std::move(busy_[p][w]));
      made.push_back({p, w, 1 - static_cast<double>(busy) / wall});
    }
  return made;
}

std::vector<stream_idle> time_sums::idle_streams() {
  std::vector<stream_idle> made;
  if (steps_.empty())
    return made;
  const auto wall = static_cast<double>(length_of(counted_));
  for (auto& [stream, times] : streams_) {
    const auto busy = counted_length(std::move(times));
    made.push_back({stream.first, std::string{stream.second},
                    1 - static_cast<double>(busy) / wall});
  }
  return made;
}

std::vector<merge_overlap> time_sums::overlap() {
  std::vector<merge_overlap> made;
  if (steps_.empty())
    return made;
  for (std::size_t p = 0; p < compute_.size(); ++p) {
    const auto compute = union_of(std::move(compute_[p]));
    const auto merge = union_of(std::move(merge_[p]));
    const auto both = shared_of(compute, merge);
    made.push_back({p, per_step(shared_length(compute, counted_)),
                    per_step(shared_length(merge, counted_)),
                    per_step(shared_length(both, counted_))});
  }
  return made;
}

/// True if a step that follows those of the trace gets the message.
bool goes_beyond(const trace_event& message, const timeline& all) {
  return !all.steps().empty() && message.step > all.steps().back().step;
}

/// Which of the trace's steps have something.
class step_marks {
public:
  explicit step_marks(const timeline& all)
    : steps_(all.steps()), is_marked_(steps_.size()) {}
  void mark(std::uint32_t step) {
    const auto found =
      std::ranges::lower_bound(steps_, step, {}, &step_times::step);
    if (found != steps_.end() && found->step == step)
      is_marked_[static_cast<std::size_t>(found - steps_.begin())] = true;
  }
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count(is_marked_, true));
  }

private:
  std::span<const step_times> steps_;
  std::vector<bool> is_marked_;
};

/// Counts the messages of the trace's steps, finds the level and sums up what
/// was lost. A trace that ended within its first step has no event that tells
/// its level.
void read_events(std::span<const process_trace> parts, const timeline& all,
                 const op_graph& graph, trace_summary& into) {
  auto& m = into.messages;
  step_marks with_messages{all};
  for (const auto& part : parts) {
    into.lost += part.lost;
    into.level = std::max(into.level, part.run.level);
    if (!part.events.empty())
      into.level = std::max(into.level, trace_level::steps);
    for (const auto& e : part.events) {
      if (e.kind == event_kind::run_begin)
        into.level = std::max(into.level, trace_level::ops);
      if (e.kind != event_kind::message)
        continue;
      into.level = std::max(into.level, trace_level::messages);
      if (goes_beyond(e, all))
        continue;
      with_messages.mark(e.step);
      const bool to_op = graph.is_op(e.to);
      if (e.from == no_handle)
        ++(to_op ? m.start_to_op : m.start_to_var);
      else if (graph.is_op(e.from))
        ++(to_op ? m.op_to_op : m.op_to_var);
      else
        ++(to_op ? m.var_to_op : m.var_to_var);
    }
  }
  into.message_steps = with_messages.count();
}

/// The first one in time, on the common clock.
failure_use failures_of(std::span<const process_trace> parts) {
  failure_use found;
  const trace_event* first = nullptr;
  for (const auto& part : parts)
    for (const auto& e : part.events)
      if (e.kind == event_kind::failure) {
        ++found.count;
        if (!first || e.time < first->time)
          first = &e;
      }
  if (first) {
    found.op = first->from;
    found.step = first->step;
  }
  return found;
}

std::vector<actor_use> actor_uses(std::span<const process_trace> parts) {
  std::vector<actor_use> made;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto& part = parts[p];
    actor_account account;
    for (const auto& e : part.events)
      account.apply(e);
    const auto wall = part.events.empty()
                        ? 0
                        : part.events.back().time - part.events.front().time;
    for (actor_number i = 0; i < part.actors.size(); ++i) {
      const auto activity = account.of(i);
      const auto busy = static_cast<double>(activity.busy_ns)
                        / static_cast<double>(std::max<std::uint64_t>(wall, 1));
      if (activity.received + activity.handled > 0 || part.actors[i].has_failed)
        made.push_back({p, i, activity, std::min(busy, 1.0)});
    }
  }
  std::ranges::stable_sort(made, std::ranges::greater{}, &actor_use::busy);
  return made;
}

} // namespace

trace_summary summarize(std::span<const process_trace> parts,
                        const timeline& all, const op_graph& graph,
                        const step_times* of) {
  trace_summary s;
  s.steps = step_statistics_of(all);
  s.op_steps = all.op_steps().size();
  if (const auto* step = of ? of : median_step(all))
    s.path = find_critical_path(all, graph, *step);
  s.slow_runs = find_slow_runs(parts, all, graph, of);
  s.slow_ranks = find_slow_ranks(all, graph);
  s.waits = find_waits(all, graph, parcel_list{parts, graph});
  time_sums sums{all, graph};
  s.types = sums.types();
  s.workers = sums.idle_workers();
  s.streams = sums.idle_streams();
  s.overlap = sums.overlap();
  s.memory = find_memory_peaks(parts);
  s.actors = actor_uses(parts);
  s.failures = failures_of(parts);
  s.failed_steps = find_failed_steps(parts, all, graph);
  s.ended_traces = find_ended_traces(parts);
  read_events(parts, all, graph, s);
  return s;
}

} // namespace troupe::trace
