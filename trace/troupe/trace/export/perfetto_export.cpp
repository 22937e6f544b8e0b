// SPDX-License-Identifier: Apache-2.0
// Perfetto's track events. Names are interned: written once, then by number.
#include <troupe/trace/export/exporters.hpp>
#include <troupe/trace/export/text_file.hpp>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <perfetto_trace.pb.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace troupe::trace {

namespace {

/// Of the field `packet` of a trace: its number, 1, and "length-delimited".
constexpr std::uint32_t packet_tag = 1 << 3 | 2;
constexpr std::uint32_t state_cleared = 1, needs_state = 2;

/// Numbers of the names of annotations.
enum class annotation : std::uint64_t {
  step = 1,
  bytes,
  ready_before_ns,
  waited_for,
  end_not_recorded,
  peer,
  mailbox,
  result,
  sender
};
constexpr const char* annotation_names[] = {
  "step", "bytes",   "ready_before_ns", "waited_for", "end_not_recorded",
  "peer", "mailbox", "result",          "sender"};

/// Names of categories: those of slices, and one of instants.
constexpr std::uint64_t event_category = slice_kinds + 1;

class perfetto_writer final : public slice_sink {
public:
  perfetto_writer(text_file& to, const traced_process& process)
    : to_(to), trace_(*process.trace), process_(process.number),
      root_((process.number + 1) << 40) {
    begin_sequence();
  }

  void take(const slice& s) override;
  void take(const instant& i) override;
  void take(const memory_sample& m) override;
  /// Writes the ends of the last slices.
  void finish();

private:
  using open_slices = std::vector<std::uint64_t>; // ends, the innermost last

  void begin_sequence();
  void end_until(open_slices& open, std::uint64_t track, std::uint64_t time);
  void write();
  perfetto::TrackEvent& event(perfetto::TrackEvent::Type type,
                              std::uint64_t track, std::uint64_t time);
  std::uint64_t track_of(track_id track);
  std::uint64_t counter_of(std::uint32_t device);
  void describe(std::uint64_t uuid, const std::string& name, bool is_counter);
  std::uint64_t intern(const std::string& name);
  std::string name_of(const slice& s) const;
  void annotate(perfetto::TrackEvent& e, const slice& s) const;
  void annotate(perfetto::TrackEvent& e, const handled_message& m) const;

  text_file& to_;
  const process_trace& trace_;
  std::size_t process_;
  std::uint64_t root_; // track of the process; others follow it
  perfetto::TracePacket packet_;
  std::string bytes_;
  std::unordered_map<std::string, std::uint64_t> names_;
  std::unordered_set<std::uint64_t> described_;
  std::unordered_map<std::uint64_t, open_slices> open_; // by track
};

/// A trace is a message whose field 1 repeats: its parts can be written one
/// after the other.
void perfetto_writer::write() {
  packet_.set_trusted_packet_sequence_id(
    static_cast<std::uint32_t>(process_ + 1));
  bytes_.clear();
  {
    google::protobuf::io::StringOutputStream stream{&bytes_};
    google::protobuf::io::CodedOutputStream coded{&stream};
    coded.WriteTag(packet_tag);
    coded.WriteVarint64(packet_.ByteSizeLong());
    packet_.SerializeWithCachedSizes(&coded);
  }
  to_ << bytes_;
  packet_.Clear();
}

void perfetto_writer::begin_sequence() {
  packet_.set_sequence_flags(state_cleared);
  auto& interned = *packet_.mutable_interned_data();
  for (std::uint64_t kind = 0; kind + 1 < event_category; ++kind) {
    auto& category = *interned.add_event_categories();
    category.set_iid(kind + 1);
    category.set_name(std::string{to_string(static_cast<slice_kind>(kind))});
  }
  auto& events = *interned.add_event_categories();
  events.set_iid(event_category);
  events.set_name("event");
  std::uint64_t number = 0;
  for (const auto* name : annotation_names) {
    auto& added = *interned.add_debug_annotation_names();
    added.set_iid(++number);
    added.set_name(name);
  }
  auto& track = *packet_.mutable_track_descriptor();
  track.set_uuid(root_);
  track.set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
  auto& described = *track.mutable_process();
  // Traces of several hosts can have the same numbers.
  described.set_pid(static_cast<std::int32_t>(process_ + 1));
  const auto& run = trace_.run;
  described.set_process_name(
    "rank " + std::to_string(run.process)
    + (run.host.empty()
         ? ""
         : " (" + run.host + ", pid " + std::to_string(run.pid) + ")"));
  write();
}

void perfetto_writer::describe(std::uint64_t uuid, const std::string& name,
                               bool is_counter) {
  if (!described_.insert(uuid).second)
    return;
  auto& track = *packet_.mutable_track_descriptor();
  track.set_uuid(uuid);
  track.set_parent_uuid(root_);
  track.set_name(name);
  track.set_sibling_order_rank(static_cast<std::int32_t>(uuid - root_));
  if (is_counter)
    track.mutable_counter()->set_unit(
      perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
  write();
}

std::uint64_t perfetto_writer::track_of(track_id track) {
  const auto uuid = root_ + number_of(track);
  describe(uuid, trace::name_of(track, trace_), false);
  return uuid;
}

std::uint64_t perfetto_writer::counter_of(std::uint32_t device) {
  const auto uuid = root_ + after_tracks + device;
  describe(uuid, "memory " + trace_.graph.devices[device], true);
  return uuid;
}

std::uint64_t perfetto_writer::intern(const std::string& name) {
  const auto [found, is_new] = names_.emplace(name, names_.size() + 1);
  if (is_new) {
    auto& added = *packet_.mutable_interned_data()->add_event_names();
    added.set_iid(found->second);
    added.set_name(name);
  }
  return found->second;
}

std::string perfetto_writer::name_of(const slice& s) const {
  if (!s.text.empty())
    return std::string{s.text};
  if (s.kind == slice_kind::step)
    return "step " + std::to_string(s.step);
  return trace_.graph.handles[s.op].name;
}

perfetto::TrackEvent& perfetto_writer::event(perfetto::TrackEvent::Type type,
                                             std::uint64_t track,
                                             std::uint64_t time) {
  packet_.set_timestamp(time);
  packet_.set_sequence_flags(needs_state);
  auto& made = *packet_.mutable_track_event();
  made.set_type(type);
  made.set_track_uuid(track);
  return made;
}

perfetto::DebugAnnotation& add_annotation(perfetto::TrackEvent& to,
                                          annotation name) {
  auto& added = *to.add_debug_annotations();
  added.set_name_iid(static_cast<std::uint64_t>(name));
  return added;
}

void add_number(perfetto::TrackEvent& to, annotation name,
                std::uint64_t value) {
  add_annotation(to, name).set_uint_value(value);
}

void perfetto_writer::annotate(perfetto::TrackEvent& e,
                               const handled_message& m) const {
  add_number(e, annotation::mailbox, m.waiting);
  add_annotation(e, annotation::result)
    .set_string_value(std::string{to_string(m.result)});
  if (m.sent)
    add_annotation(e, annotation::sender)
      .set_string_value(trace_.name_of_actor(m.sender));
}

void perfetto_writer::annotate(perfetto::TrackEvent& e, const slice& s) const {
  if (s.kind == slice_kind::handling)
    annotate(e, s.handled);
  else if (s.kind != slice_kind::phase)
    add_number(e, annotation::step, s.step);
  if (s.ready != 0 && s.ready <= s.begin)
    add_number(e, annotation::ready_before_ns, s.begin - s.ready);
  if (s.waited_for != no_handle)
    add_annotation(e, annotation::waited_for)
      .set_string_value(trace_.graph.handles[s.waited_for].name);
  if (s.is_cut)
    add_number(e, annotation::end_not_recorded, 1);
}

void perfetto_writer::end_until(open_slices& open, std::uint64_t track,
                                std::uint64_t time) {
  for (; !open.empty() && open.back() <= time; open.pop_back()) {
    event(perfetto::TrackEvent::TYPE_SLICE_END, track, open.back());
    write();
  }
}

/// The slice's end follows those of the slices within it.
void perfetto_writer::take(const slice& s) {
  const auto track = track_of(s.track);
  auto& open = open_[track];
  end_until(open, track, s.begin);
  auto& made = event(perfetto::TrackEvent::TYPE_SLICE_BEGIN, track, s.begin);
  made.add_category_iids(static_cast<std::uint64_t>(s.kind) + 1);
  made.set_name_iid(intern(name_of(s)));
  annotate(made, s);
  for (const auto message : s.received)
    made.add_terminating_flow_ids(message_id(process_, message) + 1);
  for (const auto message : s.sent)
    made.add_flow_ids(message_id(process_, message) + 1);
  write();
  open.push_back(s.end);
}

void perfetto_writer::finish() {
  for (auto& [track, open] : open_)
    end_until(open, track, UINT64_MAX);
}

void perfetto_writer::take(const instant& i) {
  const auto track = track_of(i.track);
  auto& made = event(perfetto::TrackEvent::TYPE_INSTANT, track, i.time);
  made.add_category_iids(event_category);
  made.set_name_iid(intern(std::string{to_string(i.kind)} + " "
                           + std::string{trace_.name_of(i.handle)}));
  add_number(made, annotation::step, i.step);
  add_number(made, annotation::bytes, i.bytes);
  if (i.peer != no_handle)
    add_annotation(made, annotation::peer)
      .set_string_value(trace_.graph.handles[i.peer].name);
  if (i.parcel != 0 && i.kind == event_kind::parcel_sent)
    made.add_flow_ids(parcel_id(i.parcel));
  else if (i.parcel != 0)
    made.add_terminating_flow_ids(parcel_id(i.parcel));
  write();
}

void perfetto_writer::take(const memory_sample& m) {
  const auto track = counter_of(m.device);
  event(perfetto::TrackEvent::TYPE_COUNTER, track, m.time)
    .set_counter_value(static_cast<std::int64_t>(m.live_bytes));
  write();
}

} // namespace

void export_perfetto(export_input traces, const std::filesystem::path& file) {
  text_file to{file};
  for (auto& process : traces) {
    perfetto_writer writer{to, process};
    build_slices(process, with_messages::yes, writer);
    writer.finish();
  }
  to.commit();
}

} // namespace troupe::trace
