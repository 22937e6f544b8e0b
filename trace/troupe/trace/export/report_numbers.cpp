// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/report_numbers.hpp>

#include <troupe/trace/analysis/critical_path.hpp>

#include <algorithm>
#include <map>

namespace troupe::trace {

namespace {

constexpr std::size_t shown_waits = 12;
constexpr std::size_t intervals = 500;

} // namespace

class report_numbers::collector final : public slice_sink {
public:
  /// @param end of the trace
  collector(report_numbers& into, std::uint64_t end, std::size_t process)
    : into_(into), interval_(end / intervals + 1), process_(process) {}

  void take(const slice& s) override {
    into_.end = std::max(into_.end, s.end);
    if (s.kind == slice_kind::run)
      take_run(s);
    if (s.track.kind == track_kind::worker)
      ends_[s.track.number] = std::max(ends_[s.track.number], s.end);
    const auto& shown = into_.median_interval;
    if (s.op == no_handle || s.begin >= shown.end || s.end <= shown.begin)
      return;
    auto& kept = into_.in_median_step.emplace_back(process_slice{s, process_});
    kept.received = kept.sent = {}; // last only as long as `s`
  }
  void take(const memory_sample& m) override {
    auto& curve = into_.memory[m.device];
    if (curve.empty() || m.time / interval_ != curve.back().time / interval_)
      curve.push_back({m.time, m.live_bytes});
    else
      curve.back().bytes = std::max(curve.back().bytes, m.live_bytes);
  }

private:
  void take_run(const slice& s);

  report_numbers& into_;
  std::uint64_t interval_;
  std::size_t process_;
  std::map<std::uint32_t, std::uint64_t> ends_; // by worker
};

void report_numbers::collector::take_run(const slice& s) {
  const auto before = ends_.find(s.track.number);
  if (s.track.kind != track_kind::worker || before == ends_.end()
      || s.begin <= before->second)
    return;
  auto& all = into_.waits;
  const worker_wait w{before->second, s.begin,      s.track, s.step,
                      s.op,           s.waited_for, s.ready, process_};
  const auto place = std::ranges::upper_bound(
    all, w.ns(), std::ranges::greater{}, &worker_wait::ns);
  all.insert(place, w);
  if (all.size() > shown_waits)
    all.pop_back();
}

report_numbers::report_numbers(std::span<const process_trace> parts)
  : graph(parts.front().graph), all(parts),
    summary(summarize(parts, all, graph)), median_step(trace::median_step(all)),
    memory(parts.front().graph.devices.size()) {
  const auto processes = from_origin(parts);
  const auto offset = static_cast<std::uint64_t>(processes.front().offset_ns);
  if (median_step)
    median_interval = {median_step->begin + offset, median_step->end + offset};
  std::uint64_t last = 0;
  for (const auto& part : parts)
    if (!part.events.empty())
      last = std::max(last, part.events.back().time);
  for (const auto& process : processes) {
    collector collected{*this, last + offset, process.number};
    build_slices(process, with_messages::yes, collected);
  }
}

} // namespace troupe::trace
