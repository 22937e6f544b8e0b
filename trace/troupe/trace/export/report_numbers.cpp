// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/report_numbers.hpp>

#include <algorithm>
#include <map>

namespace troupe::trace {

namespace {

constexpr std::size_t shown_waits = 12;
constexpr std::size_t intervals = 500;

std::uint64_t end_of(const traced_process& process) {
  const auto& events = process.trace->events;
  const auto last = events.empty() ? 0 : events.back().time;
  return last + static_cast<std::uint64_t>(process.offset_ns);
}

class number_collector final : public slice_sink {
public:
  explicit number_collector(const traced_process& process)
    : trace_(*process.trace), end_(end_of(process)) {
    made_.devices.resize(trace_.graph.devices.size());
  }

  void take(const slice& s) override {
    made_.end = std::max(made_.end, s.end);
    if (s.kind == slice_kind::phase)
      made_.phases.push_back(s);
    else if (s.kind == slice_kind::step && !s.is_cut)
      made_.steps.push_back({s.step, s.begin, s.end});
    else if (s.kind == slice_kind::run)
      take_run(s);
    if (s.track.kind == track_kind::worker)
      ends_[s.track.number] = std::max(ends_[s.track.number], s.end);
  }
  void take(const instant& i) override {
    made_.failures += i.kind == event_kind::failure;
  }
  void take(const memory_sample& m) override {
    auto& device = made_.devices[m.device];
    if (m.live_bytes > device.peak.bytes)
      device.peak = {m.time, m.live_bytes};
    auto& curve = device.curve;
    const auto interval = end_ / intervals + 1;
    if (curve.empty() || m.time / interval != curve.back().time / interval)
      curve.push_back({m.time, m.live_bytes});
    else
      curve.back().bytes = std::max(curve.back().bytes, m.live_bytes);
  }

  report_numbers finish();

private:
  void take_run(const slice& s);
  void take_wait(const slice& s, std::uint64_t since);

  const process_trace& trace_;
  std::uint64_t end_;
  report_numbers made_;
  std::map<std::string_view, type_runs> types_;
  std::map<std::uint32_t, std::uint64_t> ends_; // by worker
};

void number_collector::take_run(const slice& s) {
  const auto& handle = trace_.graph.handles[s.op];
  auto& type = types_[handle.type];
  ++type.runs;
  type.ns += s.end - s.begin;
  type.longest = std::max(type.longest, s.end - s.begin);
  const auto before = ends_.find(s.track.number);
  if (s.track.kind == track_kind::worker && before != ends_.end()
      && s.begin > before->second)
    take_wait(s, before->second);
}

void number_collector::take_wait(const slice& s, std::uint64_t since) {
  auto& all = made_.waits;
  const worker_wait w{since, s.begin,      s.track, s.step,
                      s.op,  s.waited_for, s.ready};
  const auto place = std::ranges::upper_bound(
    all, w.ns(), std::ranges::greater{}, &worker_wait::ns);
  all.insert(place, w);
  if (all.size() > shown_waits)
    all.pop_back();
}

std::optional<std::size_t> median_of(const std::vector<step_time>& steps) {
  if (steps.empty())
    return {};
  std::vector<std::size_t> order;
  for (std::size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i)
    order.push_back(i);
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::ranges::nth_element(order, middle, {},
                           [&](std::size_t i) { return steps[i].ns(); });
  return *middle;
}

report_numbers number_collector::finish() {
  std::ranges::stable_sort(made_.steps, {}, &step_time::begin);
  made_.median_step = median_of(made_.steps);
  for (auto& [name, times] : types_) {
    times.type = name;
    made_.types.push_back(times);
  }
  std::ranges::stable_sort(made_.types, std::ranges::greater{}, &type_runs::ns);
  return std::move(made_);
}

class slices_between final : public slice_sink {
public:
  slices_between(const step_time& step, std::vector<slice>& into)
    : step_(step), into_(into) {}

  void take(const slice& s) override {
    if (s.op != no_handle && s.begin < step_.end && s.end > step_.begin)
      into_.push_back(s);
  }

private:
  const step_time& step_;
  std::vector<slice>& into_;
};

} // namespace

report_numbers numbers_of(const traced_process& process) {
  number_collector collector{process};
  build_slices(process, with_messages::yes, collector);
  auto made = collector.finish();
  if (made.median_step) {
    slices_between shown{made.steps[*made.median_step], made.in_median_step};
    build_slices(process, with_messages::no, shown);
  }
  // The messages of a slice last only as long as it is taken.
  for (auto& s : made.in_median_step)
    s.received = s.sent = {};
  for (auto& s : made.phases)
    s.received = s.sent = {};
  return made;
}

} // namespace troupe::trace
