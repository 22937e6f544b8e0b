// SPDX-License-Identifier: Apache-2.0
// The "JSON Object Format" of chrome://tracing. Times are in microseconds.
#include <troupe/trace/export/exporters.hpp>
#include <troupe/trace/export/json_string.hpp>
#include <troupe/trace/export/text_file.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace troupe::trace {

namespace {

class chrome_writer final : public slice_sink {
public:
  chrome_writer(text_file& to, const traced_process& process, bool is_first)
    : to_(to), trace_(*process.trace), process_(process.number),
      offset_(process.offset_ns), is_first_(is_first) {
    for (auto& h : trace_.graph.handles)
      names_.push_back(json_string(h.name));
    for (auto& d : trace_.graph.devices)
      devices_.push_back(json_string("memory " + d));
    name_process();
  }

  void take(const slice& s) override;
  void take(const instant& i) override;
  void take(const memory_sample& m) override;

private:
  /// Begins an event up to its time.
  text_file& event(std::string_view phase, std::uint64_t ns);
  text_file& on(track_id track);
  void name_process();
  void name_track(track_id track);
  std::string name_of(const slice& s) const;
  void add_handled(const handled_message& m);
  std::uint64_t time_of_sending(const slice& s, std::uint64_t message) const;
  void add_flow(std::string_view phase, std::string_view what, std::uint64_t id,
                track_id track, std::uint64_t ns);

  text_file& to_;
  const process_trace& trace_;
  std::size_t process_;
  std::int64_t offset_;
  bool is_first_;
  std::vector<std::string> names_, devices_; // as JSON
  std::unordered_set<std::uint64_t> known_;  // tracks with a name
};

text_file& chrome_writer::event(std::string_view phase, std::uint64_t ns) {
  to_ << (is_first_ ? "\n" : ",\n");
  is_first_ = false;
  to_ << R"({"ph":")" << phase << R"(","pid":)" << process_ + 1 << R"(,"ts":)";
  return to_.microseconds(ns);
}

text_file& chrome_writer::on(track_id track) {
  return to_ << R"(,"tid":)" << number_of(track);
}

void chrome_writer::name_process() {
  const auto& run = trace_.run;
  auto name = "rank " + std::to_string(run.process);
  if (!run.host.empty())
    name += " (" + run.host + ", pid " + std::to_string(run.pid) + ")";
  event("M", 0) << R"(,"name":"process_name","args":{"name":)"
                << json_string(name) << "}}";
  event("M", 0) << R"(,"name":"process_sort_index","args":{"sort_index":)"
                << process_ << "}}";
}

void chrome_writer::name_track(track_id track) {
  if (!known_.insert(number_of(track)).second)
    return;
  event("M", 0);
  on(track) << R"(,"name":"thread_name","args":{"name":)"
            << json_string(trace::name_of(track, trace_)) << "}}";
  event("M", 0);
  on(track) << R"(,"name":"thread_sort_index","args":{"sort_index":)"
            << number_of(track) << "}}";
}

std::string chrome_writer::name_of(const slice& s) const {
  if (!s.text.empty())
    return json_string(s.text);
  if (s.kind == slice_kind::step)
    return R"("step )" + std::to_string(s.step) + '"';
  return names_[s.op];
}

/// An arrow ends at the slice around its time, so this lies inside.
void chrome_writer::add_flow(std::string_view phase, std::string_view what,
                             std::uint64_t id, track_id track,
                             std::uint64_t ns) {
  event(phase, ns);
  on(track) << R"(,"name":")" << what << R"(","cat":")" << what << R"(","id":)"
            << id;
  to_ << (phase == "f" ? R"(,"bp":"e"})" : "}");
}

void chrome_writer::add_handled(const handled_message& m) {
  to_ << R"("mailbox":)" << m.waiting << R"(,"result":")" << to_string(m.result)
      << "\"";
  if (m.sent)
    to_ << R"(,"sender":)" << json_string(trace_.name_of_actor(m.sender));
}

/// An op sends its messages when it has run, an actor while it handles one.
std::uint64_t chrome_writer::time_of_sending(const slice& s,
                                             std::uint64_t message) const {
  if (s.kind != slice_kind::handling)
    return s.end - 1;
  const auto sent =
    trace_.events[message].time + static_cast<std::uint64_t>(offset_);
  return std::clamp(sent, s.begin, s.end - 1);
}

void chrome_writer::take(const slice& s) {
  name_track(s.track);
  event("X", s.begin);
  on(s.track) << R"(,"dur":)";
  to_.microseconds(s.end - s.begin)
    << R"(,"cat":")" << to_string(s.kind) << R"(","name":)" << name_of(s);
  to_ << R"(,"args":{)";
  if (s.kind == slice_kind::handling)
    add_handled(s.handled);
  else if (s.kind != slice_kind::phase)
    to_ << R"("step":)" << s.step;
  if (s.ready != 0 && s.ready <= s.begin) {
    to_ << R"(,"ready_before_us":)";
    to_.microseconds(s.begin - s.ready);
  }
  if (s.waited_for != no_handle)
    to_ << R"(,"waited_for":)" << names_[s.waited_for];
  if (s.is_cut)
    to_ << R"(,"end":"not recorded")";
  to_ << "}}";
  for (const auto message : s.received)
    add_flow("f", "message", message_id(process_, message), s.track, s.begin);
  for (const auto message : s.sent)
    add_flow("s", "message", message_id(process_, message), s.track,
             time_of_sending(s, message));
}

void chrome_writer::take(const instant& i) {
  name_track(i.track);
  event("i", i.time);
  on(i.track) << R"(,"s":")" << (i.kind == event_kind::failure ? "p" : "t")
              << R"(","name":)"
              << json_string(std::string{to_string(i.kind)} + " "
                             + std::string{trace_.name_of(i.handle)})
              << R"(,"args":{"step":)" << i.step << R"(,"bytes":)" << i.bytes;
  if (i.peer != no_handle)
    to_ << R"(,"peer":)" << names_[i.peer];
  to_ << "}}";
  if (i.parcel != 0)
    add_flow(i.kind == event_kind::parcel_sent ? "s" : "f", "parcel",
             parcel_id(i.parcel), i.track, i.time);
}

void chrome_writer::take(const memory_sample& m) {
  event("C", m.time) << R"(,"name":)" << devices_[m.device]
                     << R"(,"args":{"bytes":)" << m.live_bytes << "}}";
}

} // namespace

void export_chrome(export_input traces, const std::filesystem::path& file) {
  text_file to{file};
  to << R"({"displayTimeUnit":"ns","otherData":{"producer":)"
     << json_string("troupe " + traces[0].trace->run.version)
     << R"(},"traceEvents":[)";
  for (auto& process : traces) {
    chrome_writer writer{to, process, &process == &traces[0]};
    build_slices(process, with_messages::yes, writer);
  }
  to << "\n]}\n";
  to.commit();
}

} // namespace troupe::trace
