// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/replay.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/readiness.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace troupe::trace {

namespace {

using number = std::uint32_t;
constexpr number none = std::numeric_limits<number>::max();

/// A worker that begins an op later than this after it could was not on its
/// way to it: it was asleep, or had not seen the op. Meanwhile other workers
/// can run other ops. Shorter times are the engine's work between two ops.
constexpr double longest_overhead_ns = 10e3;

/// Ends of the runs that use a pool of workers, or of launches of a stream.
class pool_use {
public:
  explicit pool_use(std::size_t size = 1) : size_(size) {}
  /// The last time up to `now` at which all places were taken.
  std::uint64_t last_full(std::uint64_t now) {
    while (!ends_.empty() && ends_.top() <= now) {
      if (ends_.size() >= size_)
        last_full_ = ends_.top();
      ends_.pop();
    }
    return last_full_;
  }
  std::size_t take(std::uint64_t until) {
    ends_.push(until);
    return ends_.size();
  }

private:
  std::size_t size_;
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>>
    ends_;
  std::uint64_t last_full_ = 0;
};

/// A run that is run again.
struct node {
  const op_run* run = nullptr;
  double cost = 0;     ///< from its begin, or its last partner's, to results
  double occupied = 0; ///< of a pending launch: time of the worker
  double overhead = 0; ///< before it begins, on the worker
  double delay = 0;    ///< before it asks for a worker
  number stream = 0;
  number missing = 0;          ///< results that it waits for
  number missing_partners = 0; ///< that have not begun
  double begin = -1;           ///< -1: it has not begun
  double last_partner = 0;     ///< begin of the last one that has begun
  std::vector<number> readers, dependents; ///< dependents: it is their partner
  bool is_pending() const { return run->done > run->end; }
};

struct step_state {
  std::uint64_t begin = 0, end = 0; // measured
  double new_begin = -1, new_end = -1;
  double results = 0; ///< when the last op was done
  double tail = 0;    ///< from then, or the end of the step before, to its end
  number missing = 0; ///< ops that are not done
  std::vector<number> nodes = {};
  std::vector<number> admits =
    {}; ///< steps that begin after this one has ended
};

struct place_pool {
  std::size_t free = 0;
  std::set<number> waiting; ///< nodes, in the order of their measured begin
};

enum class happens : std::uint8_t { admission, asks, begins, frees, done };

struct happening {
  double time;
  std::uint64_t order; ///< of those at one time the earlier scheduled first
  happens what;
  number of;
  bool operator>(const happening& o) const {
    return std::tie(time, order) > std::tie(o.time, o.order);
  }
};

bool is_meant(const std::string& ops, const handle_info& op) {
  return ops == "*" || op.type == ops || op.name == ops;
}

[[noreturn]] void refuse_ops(const std::string& ops,
                             const handle_info& example) {
  throw error(errc::not_found, "no op has run whose type or name is "
                                 + quoted_name(ops)
                                 + "; an op has a type and a name such as "
                                 + quoted_name(example.type) + " and "
                                 + quoted_name(example.name));
}

class replaying {
public:
  replaying(const timeline& all, const op_graph& graph, const step_range& range,
            std::span<const cost_change> changes, const cost_table* costs)
    : all_(all), graph_(graph) {
    collect(range);
    if (costs)
      use_costs(*costs);
    change_costs(changes);
    find_streams();
    connect();
    measure_delays();
    find_admissions();
  }

  replayed_steps run();

private:
  void collect(const step_range& range);
  void use_costs(const cost_table& costs);
  void change_costs(std::span<const cost_change> changes);
  void find_streams();
  void connect();
  void measure_delays();
  void find_admissions();

  void at(double time, happens what, number of) {
    queue_.push({time, scheduled_++, what, of});
  }
  void handle(const happening& h);
  void received(number i, double time);
  void launch_next(number stream, double time);
  void begin_next(std::size_t process, double time);
  void begun(number i, double time);
  void finish(number i);
  void is_done(number i, double time);
  void end_steps();

  const timeline& all_;
  const op_graph& graph_;
  std::vector<node> nodes_;     // ordered by their measured begin
  std::vector<number> node_of_; // by index of the run
  std::vector<step_state> steps_;
  std::uint32_t first_step_ = 0;
  std::vector<place_pool> streams_, workers_;
  std::vector<std::size_t> widths_; // of streams
  std::size_t ended_ = 0;           // steps
  std::uint64_t scheduled_ = 0;
  std::priority_queue<happening, std::vector<happening>, std::greater<>> queue_;
};

void replaying::collect(const step_range& range) {
  first_step_ = range.first;
  node_of_.assign(all_.runs().size(), none);
  const auto known = all_.steps();
  std::vector<number> indexes;
  for (auto step = range.first;; ++step) {
    const auto found =
      std::ranges::lower_bound(known, step, {}, &step_times::step);
    if (found == known.end() || found->step != step || !found->is_whole)
      throw error(errc::invalid_argument, "step " + std::to_string(step)
                                            + " is not whole in the trace");
    steps_.push_back({found->begin, found->end});
    const auto of_step = all_.runs_of(step);
    indexes.insert(indexes.end(), of_step.begin(), of_step.end());
    if (step == range.last)
      break;
  }
  std::ranges::sort(indexes); // runs are ordered by their begin
  for (auto i : indexes) {
    const auto& r = all_.runs()[i];
    node n;
    n.run = &r;
    n.cost = static_cast<double>(own_time(all_, graph_, r));
    n.occupied = static_cast<double>(r.end - r.begin);
    const auto place = static_cast<number>(nodes_.size());
    node_of_[i] = place;
    steps_[r.step - first_step_].nodes.push_back(place);
    nodes_.push_back(std::move(n));
  }
}

void replaying::use_costs(const cost_table& costs) {
  bool is_any_known = false;
  for (auto& n : nodes_)
    if (const auto* row = costs.find(graph_.graph(), n.run->op)) {
      n.cost = row->ns;
      is_any_known = true;
    }
  if (!is_any_known)
    throw error(errc::invalid_argument,
                "no op that has run is among the costs");
}

void replaying::change_costs(std::span<const cost_change> changes) {
  const auto& handles = graph_.graph().handles;
  for (const auto& change : changes) {
    bool is_known = false;
    for (auto& n : nodes_)
      if (is_meant(change.ops, handles[n.run->op])) {
        n.cost = change.of(n.cost);
        is_known = true;
      }
    if (!is_known)
      refuse_ops(
        change.ops,
        handles[std::ranges::max_element(nodes_, {}, &node::cost)->run->op]);
  }
}

void replaying::find_streams() {
  std::map<std::pair<std::uint32_t, std::string>, number> found;
  for (auto& n : nodes_) {
    const auto& h = graph_.graph().handles[n.run->op];
    n.stream =
      found.try_emplace({h.device, h.stream}, static_cast<number>(found.size()))
        .first->second;
  }
  // As wide as it was: the most launches that ran at once.
  std::vector<pool_use> use(found.size());
  widths_.assign(found.size(), 1);
  for (const auto& n : nodes_) {
    use[n.stream].last_full(n.run->begin);
    widths_[n.stream] =
      std::max(widths_[n.stream], use[n.stream].take(n.run->end));
  }
  for (auto width : widths_)
    streams_.push_back({width, {}});
  for (std::size_t p = 0; p < all_.processes(); ++p)
    workers_.push_back({all_.workers(p), {}});
}

void replaying::connect() {
  for (number i = 0; i < nodes_.size(); ++i) {
    auto& n = nodes_[i];
    n.missing = 1; // its step's begin
    for (const auto& d : graph_.before(n.run->op)) {
      if (d.distance > n.run->step)
        continue;
      const auto* before = all_.find(d.op, n.run->step - d.distance);
      const auto from = before ? node_of_[all_.index_of(*before)] : none;
      if (from == none || from == i)
        continue;
      nodes_[from].readers.push_back(i);
      ++n.missing;
    }
    for (auto op : graph_.partners(n.run->op)) {
      const auto* other = all_.find(op, n.run->step);
      const auto from = other ? node_of_[all_.index_of(*other)] : none;
      if (from == none)
        continue;
      nodes_[from].dependents.push_back(i);
      ++n.missing_partners;
    }
  }
}

void replaying::measure_delays() {
  std::vector<pool_use> streams, workers;
  for (auto width : widths_)
    streams.emplace_back(width);
  for (std::size_t p = 0; p < all_.processes(); ++p)
    workers.emplace_back(all_.workers(p));
  for (auto& n : nodes_) {
    const auto& r = *n.run;
    const auto could_begin = std::max({ready_at(all_, graph_, r).time,
                                       streams[n.stream].last_full(r.begin),
                                       workers[r.process].last_full(r.begin)});
    const auto late = static_cast<double>(r.begin - could_begin);
    (late > longest_overhead_ns ? n.delay : n.overhead) = late;
    streams[n.stream].take(r.end);
    workers[r.process].take(r.end);
  }
}

void replaying::find_admissions() {
  const auto before = [this](std::size_t s) -> std::uint64_t {
    return s == 0 ? 0 : steps_[s - 1].end;
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    auto& own = steps_[s];
    own.missing = static_cast<number>(own.nodes.size());
    auto results = before(s);
    for (auto i : own.nodes)
      results = std::max(results, nodes_[i].run->done);
    own.tail = own.end > results ? static_cast<double>(own.end - results) : 0.0;
    // It began when the last step that had ended by then had ended.
    auto after = s;
    while (after > 0 && steps_[after - 1].end > own.begin)
      --after;
    if (after > 0)
      steps_[after - 1].admits.push_back(static_cast<number>(s));
    else
      at(static_cast<double>(own.begin), happens::admission,
         static_cast<number>(s));
  }
}

void replaying::handle(const happening& h) {
  switch (h.what) {
  case happens::admission:
    steps_[h.of].new_begin = h.time;
    for (auto i : steps_[h.of].nodes)
      received(i, h.time);
    return;
  case happens::asks: {
    const auto process = nodes_[h.of].run->process;
    workers_[process].waiting.insert(h.of);
    return begin_next(process, h.time);
  }
  case happens::begins: return begun(h.of, h.time);
  case happens::frees: {
    const auto& n = nodes_[h.of];
    ++streams_[n.stream].free;
    ++workers_[n.run->process].free;
    launch_next(n.stream, h.time);
    return begin_next(n.run->process, h.time);
  }
  case happens::done: return is_done(h.of, h.time);
  }
}

void replaying::received(number i, double time) {
  if (--nodes_[i].missing > 0)
    return;
  streams_[nodes_[i].stream].waiting.insert(i);
  launch_next(nodes_[i].stream, time);
}

void replaying::launch_next(number stream, double time) {
  auto& s = streams_[stream];
  while (s.free > 0 && !s.waiting.empty()) {
    const auto i = *s.waiting.begin();
    s.waiting.erase(s.waiting.begin());
    --s.free;
    at(time + nodes_[i].delay, happens::asks, i);
  }
}

void replaying::begin_next(std::size_t process, double time) {
  auto& w = workers_[process];
  while (w.free > 0 && !w.waiting.empty()) {
    const auto i = *w.waiting.begin();
    w.waiting.erase(w.waiting.begin());
    --w.free;
    at(time + nodes_[i].overhead, happens::begins, i);
  }
}

void replaying::begun(number i, double time) {
  auto& n = nodes_[i];
  n.begin = time;
  if (n.is_pending())
    at(time + n.occupied, happens::frees, i);
  if (n.missing_partners == 0)
    finish(i);
  for (auto d : n.dependents) {
    auto& dependent = nodes_[d];
    dependent.last_partner = time;
    if (--dependent.missing_partners == 0 && dependent.begin >= 0)
      finish(d);
  }
}

void replaying::finish(number i) {
  const auto& n = nodes_[i];
  const auto time = std::max(n.begin, n.last_partner) + n.cost;
  at(time, happens::done, i); // first: readers go on with the stream
  if (!n.is_pending())
    at(time, happens::frees, i);
}

void replaying::is_done(number i, double time) {
  const auto& n = nodes_[i];
  for (auto reader : n.readers)
    received(reader, time);
  auto& own = steps_[n.run->step - first_step_];
  own.results = std::max(own.results, time);
  --own.missing;
  end_steps();
}

void replaying::end_steps() {
  for (; ended_ < steps_.size() && steps_[ended_].missing == 0; ++ended_) {
    auto& own = steps_[ended_];
    const auto before = ended_ > 0 ? steps_[ended_ - 1].new_end : 0.0;
    own.new_end = std::max(own.results, before) + own.tail;
    for (auto s : own.admits)
      at(own.new_end + static_cast<double>(steps_[s].begin - own.end),
         happens::admission, s);
  }
}

replayed_steps replaying::run() {
  while (!queue_.empty()) {
    const auto next = queue_.top();
    queue_.pop();
    handle(next);
  }
  if (ended_ < steps_.size())
    throw error(errc::invalid_argument,
                "the steps cannot be replayed: ops wait for each other");
  replayed_steps made;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const auto& own = steps_[s];
    const auto number_of = first_step_ + static_cast<std::uint32_t>(s);
    const auto known =
      std::ranges::lower_bound(all_.steps(), number_of, {}, &step_times::step);
    // The step before the first one ended as it did.
    const auto after = s > 0 ? std::max(own.new_begin, steps_[s - 1].new_end)
                             : static_cast<double>(known->after);
    made.steps.push_back(number_of);
    made.measured_ns.push_back(static_cast<double>(known->ns()));
    made.predicted_ns.push_back(own.new_end - after);
  }
  return made;
}

constexpr std::size_t most_replayed_runs = 200'000;

/// The whole steps in a row that end with `last`, an index of steps.
std::size_t begin_of_row(std::span<const step_times> steps, std::size_t last,
                         std::size_t most) {
  auto first = last;
  while (first > 0 && last - first + 1 < most && steps[first - 1].is_whole
         && steps[first - 1].step + 1 == steps[first].step)
    --first;
  return first;
}

} // namespace

step_range steps_to_replay(const timeline& all) {
  const auto steps = all.steady_steps();
  if (all.runs().empty())
    throw error(
      errc::invalid_argument,
      "the trace does not say when ops ran: record with --trace-level "
      "ops or messages");
  step_range best;
  std::size_t longest = 0;
  for (std::size_t last = 0; last < steps.size(); ++last) {
    if (!steps[last].is_whole)
      continue;
    const auto most = std::max<std::size_t>(
      2, most_replayed_runs
           / std::max<std::size_t>(1, all.runs_of(steps[last].step).size()));
    const auto first = begin_of_row(steps, last, most);
    if (last - first + 1 > longest) {
      longest = last - first + 1;
      best = {steps[first].step, steps[last].step};
    }
  }
  if (longest == 0)
    throw error(errc::invalid_argument, "the trace has no whole step");
  return best;
}

step_range steps_to_replay(const timeline& all, std::uint32_t only) {
  steps_to_replay(all); // the same refusals
  const auto steps = all.steps();
  const auto found =
    std::ranges::lower_bound(steps, only, {}, &step_times::step);
  if (found == steps.end() || found->step != only || !found->is_whole)
    throw error(errc::invalid_argument,
                "the trace has no whole step " + std::to_string(only));
  constexpr std::size_t steps_before = 4; // so that the row is in its stride
  const auto last = static_cast<std::size_t>(found - steps.begin());
  return {steps[begin_of_row(steps, last, steps_before + 1)].step, only};
}

replayed_steps replay(const timeline& all, const op_graph& graph,
                      const step_range& range,
                      std::span<const cost_change> changes,
                      const cost_table* costs) {
  return replaying{all, graph, range, changes, costs}.run();
}

} // namespace troupe::trace
