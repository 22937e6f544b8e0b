// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/track_slices.hpp>

#include <troupe/trace/analysis/memory_account.hpp>
#include <troupe/trace/export/slice_tracks.hpp>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace troupe::trace {

namespace {

/// Messages that one run of an op has received so far.
struct inbox {
  std::uint32_t step = 0;
  std::uint64_t ready = 0;
  handle_id last_sender = no_handle;
  std::vector<std::uint64_t> messages;
};

/// A message in a mailbox: the number of its event.
struct sent_mail {
  std::uint64_t number = 0;
  bool has_arrow = false; ///< it was sent within a slice
};

/// Messages to an actor by `mail_id::message`, until they are handled.
using mailbox = std::unordered_map<std::uint32_t, sent_mail>;
/// Beyond that, messages went to an actor that has ended.
constexpr std::size_t most_in_mailbox = std::size_t{1} << 20;

/// More runs of an op than steps can be in flight: the oldest were lost.
constexpr std::size_t most_inboxes = 1024;

class slice_builder {
public:
  /// @param arrives by message number: whether a run receives it. Filled if
  ///   `sink` is null, used otherwise; null: messages are left out
  slice_builder(const traced_process& process, std::vector<bool>* arrives,
                slice_sink* sink)
    : process_(process), trace_(*process.trace), offset_(process.offset_ns),
      arrives_(arrives), sink_(sink), tracks_(sink),
      inboxes_(trace_.graph.handles.size()),
      sender_(trace_.graph.handles.size()),
      merges_late_(trace_.graph.handles.size()),
      completes_(trace_.graph.handles.size()), mailboxes_(trace_.actors.size()),
      memory_(trace_) {}

  void build();

private:
  void find_late_ends();
  void add_phases();
  bool is_known(const trace_event& e) const;
  void add(std::uint64_t number, const trace_event& e);
  void begin_run(const trace_event& e);
  void end_run(const trace_event& e);
  void begin_help(const trace_event& e);
  void merge(const trace_event& e, bool begins);
  void complete(const trace_event& e);
  void send(std::uint64_t number, const trace_event& e);
  void put_into_mailbox(std::uint64_t number, const trace_event& e);
  void begin_handling(const trace_event& e);
  void end_handling(const trace_event& e);
  void change_memory(const trace_event& e);
  void note(const trace_event& e);
  void note_parcel(std::uint64_t number, const trace_event& e);
  void note_collective(std::uint64_t number, const trace_event& e);
  void note_early_parcels(const slice& run);
  const slice* find_open(handle_id op, std::uint32_t step) const;
  void open_inbox(slice& s, std::vector<std::uint64_t>& received);

  std::uint64_t time_of(std::uint64_t ns) const {
    return ns + static_cast<std::uint64_t>(offset_);
  }
  std::uint64_t time_of(const trace_event& e) const { return time_of(e.time); }
  bool is_worker(const trace_event& e) const {
    return e.worker != recorder::no_worker;
  }
  /// The track of a new slice of the thread that recorded `e`.
  slice_track& track_for(const trace_event& e) {
    return is_worker(e) ? tracks_.at({track_kind::worker, e.worker})
                        : tracks_.free(track_kind::other, time_of(e));
  }
  slice slice_of(const trace_event& e, slice_kind kind) const {
    slice s;
    s.kind = kind;
    s.begin = time_of(e);
    s.op = e.from;
    s.step = e.step;
    return s;
  }

  const traced_process& process_;
  const process_trace& trace_;
  std::int64_t offset_;
  std::vector<bool>* arrives_;
  slice_sink* sink_;
  slice_tracks tracks_;
  std::vector<std::vector<inbox>> inboxes_; // by handle
  std::vector<slice_ref> sender_;  // by handle: whose messages it sends
  std::vector<bool> merges_late_;  // by handle: after their run
  std::vector<bool> completes_;    // by handle: launches complete later
  std::vector<mailbox> mailboxes_; // by actor
  memory_account memory_;
  /// By op: parcels that arrived before it ran.
  std::unordered_map<handle_id, std::vector<instant>> early_;
  std::uint64_t last_ = 0;
};

void slice_builder::build() {
  if (sink_)
    add_phases();
  find_late_ends();
  for (std::uint64_t i = 0; i < trace_.events.size(); ++i)
    if (is_known(trace_.events[i]))
      add(i, trace_.events[i]);
  tracks_.close(last_);
}

/// Finds the ops whose launches complete, or whose merges end, after their
/// runs.
void slice_builder::find_late_ends() {
  constexpr std::uint16_t none = recorder::no_worker;
  std::vector<std::uint16_t> merges_on(completes_.size(), none);
  for (auto& e : trace_.events) {
    if (!is_known(e))
      continue;
    switch (e.kind) {
    case event_kind::completion: completes_[e.from] = true; break;
    case event_kind::merge_begin: merges_on[e.from] = e.worker; break;
    case event_kind::run_end: merges_on[e.from] = none; break;
    case event_kind::merge_end:
      if (merges_on[e.from] == none || merges_on[e.from] != e.worker)
        merges_late_[e.from] = true;
      break;
    default: break;
    }
  }
}

void slice_builder::add_phases() {
  for (auto& p : trace_.phases) {
    slice s;
    s.kind = slice_kind::phase;
    s.begin = time_of(static_cast<std::uint64_t>(p.begin_ns));
    s.text = p.name;
    auto& track = tracks_.free(track_kind::start_up, s.begin);
    track.begin(s, {});
    track.end(track.top(), time_of(static_cast<std::uint64_t>(p.end_ns)));
  }
}

/// Ids come from a file.
bool slice_builder::is_known(const trace_event& e) const {
  const auto handles = trace_.graph.handles.size();
  const auto exists = [handles](handle_id id) { return id < handles; };
  switch (e.kind) {
  case event_kind::step_begin:
  case event_kind::step_end:
  case event_kind::failure: return e.from == no_handle || exists(e.from);
  case event_kind::message:
    return (e.from == no_handle || exists(e.from)) && exists(e.to);
  case event_kind::allocation:
  case event_kind::deallocation:
  case event_kind::parcel_sent:
  case event_kind::parcel_arrived: return exists(e.from) && exists(e.to);
  case event_kind::mail: return e.to < mailboxes_.size();
  case event_kind::handling_begin:
  case event_kind::handling_end: return e.from < mailboxes_.size();
  case event_kind::core_wait: return false; // no track shows it
  default: return exists(e.from);
  }
}

void slice_builder::add(std::uint64_t number, const trace_event& e) {
  last_ = std::max(last_, time_of(e));
  change_memory(e);
  switch (e.kind) {
  case event_kind::step_begin:
    tracks_.free(track_kind::steps, time_of(e))
      .begin(slice_of(e, slice_kind::step), {});
    return;
  case event_kind::step_end:
    tracks_.end(track_kind::steps, slice_of(e, slice_kind::step), time_of(e));
    return;
  case event_kind::run_begin: begin_run(e); return note_collective(number, e);
  case event_kind::run_end: note_collective(number, e); return end_run(e);
  case event_kind::completion: note_collective(number, e); return complete(e);
  case event_kind::help_begin: return begin_help(e);
  case event_kind::help_end:
    if (is_worker(e))
      tracks_.at({track_kind::worker, e.worker})
        .end(slice_of(e, slice_kind::help), time_of(e));
    else
      tracks_.end(track_kind::other, slice_of(e, slice_kind::help), time_of(e));
    return;
  case event_kind::merge_begin: return merge(e, true);
  case event_kind::merge_end: return merge(e, false);
  case event_kind::allocation:
  case event_kind::deallocation: return;
  case event_kind::message:
    if (arrives_)
      send(number, e);
    return;
  case event_kind::mail: return put_into_mailbox(number, e);
  case event_kind::handling_begin: return begin_handling(e);
  case event_kind::handling_end: return end_handling(e);
  case event_kind::feed:
  case event_kind::fetch:
  case event_kind::failure: return note(e);
  case event_kind::parcel_sent:
  case event_kind::parcel_arrived: return note_parcel(number, e);
  case event_kind::hand_over:
  case event_kind::arrival: return; // a message says the same
  case event_kind::core_wait: return;
  }
}

/// Takes the messages that this run has waited for.
void slice_builder::open_inbox(slice& s, std::vector<std::uint64_t>& received) {
  auto& all = inboxes_[s.op];
  const auto found = std::ranges::find(all, s.step, &inbox::step);
  if (found == all.end())
    return;
  s.ready = found->ready;
  s.waited_for = found->last_sender;
  received = std::move(found->messages);
  if (found + 1 != all.end())
    *found = std::move(all.back());
  all.pop_back();
  if (!sink_)
    for (const auto number : received)
      (*arrives_)[number] = true;
}

void slice_builder::begin_run(const trace_event& e) {
  auto& track = track_for(e);
  track.cut(time_of(e));
  auto s = slice_of(e, slice_kind::run);
  std::vector<std::uint64_t> received;
  open_inbox(s, received);
  track.begin(s, std::move(received));
  if (completes_[e.from]) {
    s.kind = slice_kind::in_flight;
    tracks_.free(track_kind::in_flight, time_of(e)).begin(s, {});
  }
  note_early_parcels(s);
}

void slice_builder::end_run(const trace_event& e) {
  const auto s = slice_of(e, slice_kind::run);
  const auto ended =
    is_worker(e) ? tracks_.at({track_kind::worker, e.worker}).end(s, time_of(e))
                 : tracks_.end(track_kind::other, s, time_of(e));
  sender_[e.from] = ended;
}

void slice_builder::complete(const trace_event& e) {
  const auto ended = tracks_.end(
    track_kind::in_flight, slice_of(e, slice_kind::in_flight), time_of(e));
  if (ended)
    sender_[e.from] = ended;
}

void slice_builder::begin_help(const trace_event& e) {
  auto& track = track_for(e);
  if (track.top().kind != slice_kind::run || !track.is_open())
    track.cut(time_of(e));
  track.begin(slice_of(e, slice_kind::help), {});
}

/// Of collectives that complete later, the slice in flight shows the merging.
void slice_builder::merge(const trace_event& e, bool begins) {
  if (completes_[e.from])
    return;
  const auto s = slice_of(e, slice_kind::merge);
  if (merges_late_[e.from]) {
    if (begins)
      tracks_.free(track_kind::in_flight, time_of(e)).begin(s, {});
    else
      tracks_.end(track_kind::in_flight, s, time_of(e));
    return;
  }
  if (!is_worker(e))
    return;
  auto& track = tracks_.at({track_kind::worker, e.worker});
  if (!begins)
    track.end(s, time_of(e));
  else if (track.is_open() && track.top().op == e.from)
    track.begin(s, {});
}

/// A variable sends its messages when it has received its last one: they come
/// from the run that sent it that one.
void slice_builder::send(std::uint64_t number, const trace_event& e) {
  const auto from = e.from == no_handle ? slice_ref{} : sender_[e.from];
  const auto& to = trace_.graph.handles[e.to];
  if (!to.is_op) {
    sender_[e.to] = from;
    return;
  }
  auto& all = inboxes_[e.to];
  auto found = std::ranges::find(all, e.step, &inbox::step);
  if (found == all.end()) {
    if (all.size() >= most_inboxes)
      all.erase(all.begin());
    found = all.insert(all.end(), inbox{e.step, 0, no_handle, {}});
  }
  found->ready = std::max(found->ready, time_of(e));
  found->last_sender = e.from;
  if (!tracks_.has(from))
    return;
  if (!sink_) {
    found->messages.push_back(number);
  } else if ((*arrives_)[number]) {
    found->messages.push_back(number);
    tracks_.send(from, number);
  }
}

/// An actor sends while it handles another message: the arrow comes from there.
void slice_builder::put_into_mailbox(std::uint64_t number,
                                     const trace_event& e) {
  sent_mail mail{number, false};
  if (arrives_ && e.from < mailboxes_.size()) {
    auto& track = tracks_.at({track_kind::actor, e.from});
    mail.has_arrow = track.is_open() && (!sink_ || (*arrives_)[number]);
    if (mail.has_arrow && sink_)
      track.send(number);
  }
  auto& box = mailboxes_[e.to];
  if (box.size() >= most_in_mailbox)
    box.clear();
  box.insert_or_assign(mail_id::of(e.amount).message, mail);
}

void slice_builder::begin_handling(const trace_event& e) {
  const auto id = mail_id::of(e.amount);
  auto s = slice_of(e, slice_kind::handling);
  s.op = no_handle;
  s.step = 0;
  s.text = trace_.name_of_type(id.type);
  s.handled.waiting = e.step;
  std::vector<std::uint64_t> received;
  auto& box = mailboxes_[e.from];
  if (const auto found = box.find(id.message); found != box.end()) {
    const auto& mail = trace_.events[found->second.number];
    s.handled.sender = mail.from;
    s.handled.sent = time_of(mail);
    if (found->second.has_arrow)
      received.push_back(found->second.number);
    box.erase(found);
  }
  if (!sink_)
    for (const auto number : received)
      (*arrives_)[number] = true;
  auto& track = tracks_.at({track_kind::actor, e.from});
  track.cut(time_of(e));
  track.begin(s, std::move(received));
}

void slice_builder::end_handling(const trace_event& e) {
  auto s = slice_of(e, slice_kind::handling);
  s.op = no_handle;
  s.step = 0;
  auto& track = tracks_.at({track_kind::actor, e.from});
  if (e.step < handling_results && track.is_open())
    track.set_result(static_cast<handling_result>(e.step));
  track.end(s, time_of(e));
}

void slice_builder::change_memory(const trace_event& e) {
  if (!sink_)
    return;
  const auto change = memory_.apply(e);
  if (!change)
    return;
  const auto op = e.kind == event_kind::feed ? no_handle : e.from;
  sink_->take(memory_sample{time_of(e), change->device, change->variable, op,
                            e.step, change->bytes,
                            memory_.bytes(change->device)});
}

void slice_builder::note(const trace_event& e) {
  if (!sink_)
    return;
  const track_id track = is_worker(e) ? track_id{track_kind::worker, e.worker}
                                      : track_id{track_kind::other, 0};
  sink_->take(instant{e.kind, track, time_of(e), e.from, e.step, e.amount});
}

/// The slice in which an op of a step is under way; null if there is none.
const slice* slice_builder::find_open(handle_id op, std::uint32_t step) const {
  slice like;
  like.op = op;
  like.step = step;
  const slice* found = nullptr;
  for (const auto& [track, kind] :
       {std::pair{track_kind::worker, slice_kind::run},
        {track_kind::other, slice_kind::run},
        {track_kind::in_flight, slice_kind::in_flight}}) {
    like.kind = kind;
    if (!found)
      found = tracks_.find_open(track, like);
  }
  return found;
}

/// Shows an end of a parcel in the slice of its op.
void slice_builder::note_parcel(std::uint64_t number, const trace_event& e) {
  if (!sink_)
    return;
  const bool is_sent = e.kind == event_kind::parcel_sent;
  instant i{e.kind,
            {track_kind::other, 0},
            time_of(e),
            is_sent ? e.from : e.to,
            e.step,
            e.amount,
            is_sent ? e.to : e.from};
  if (const auto found = process_.parcels.find(number);
      found != process_.parcels.end())
    i.parcel = found->second.number;
  if (const auto* open = find_open(i.handle, i.step)) {
    i.track = open->track;
    i.time = std::max(i.time, open->begin);
  } else if (!is_sent) {
    early_[i.handle].push_back(i);
    return;
  }
  sink_->take(i);
}

/// A `recv` takes what has arrived before when it begins.
void slice_builder::note_early_parcels(const slice& run) {
  const auto found = early_.find(run.op);
  if (found == early_.end())
    return;
  for (auto& i : found->second)
    if (const auto* open = find_open(run.op, run.step);
        open && i.step == run.step) {
      i.track = open->track;
      i.time = std::max(i.time, open->begin);
      sink_->take(i);
    }
  std::erase_if(found->second,
                [&](const instant& i) { return i.step <= run.step; });
}

/// What ranks of a collective wait for has no events of its own: it is sent
/// when the last rank begins, and has arrived when another one is done.
void slice_builder::note_collective(std::uint64_t number,
                                    const trace_event& e) {
  if (!sink_)
    return;
  const auto [first, last] = process_.parcels.equal_range(number);
  const auto* open = first == last ? nullptr : find_open(e.from, e.step);
  const bool is_sent = e.kind == event_kind::run_begin;
  for (auto at = first; open && at != last; ++at) {
    const auto& [number_of_parcel, what] = at->second;
    sink_->take(instant{
      is_sent ? event_kind::parcel_sent : event_kind::parcel_arrived,
      open->track, std::max(time_of(e) - 1, open->begin), e.from, e.step,
      what->bytes, is_sent ? what->receiver : what->sender, number_of_parcel});
  }
}

} // namespace

std::vector<traced_process> from_origin(std::span<const process_trace> traces,
                                        std::span<const parcel> parcels) {
  std::int64_t first = 0;
  for (auto& t : traces)
    for (auto& p : t.phases)
      first = std::min(first, p.begin_ns);
  std::vector<traced_process> all;
  for (auto& t : traces)
    all.push_back({&t, all.size(), -first});
  for (std::size_t i = 0; i < parcels.size(); ++i)
    if (parcels[i].is_whole())
      for (const auto& end : {*parcels[i].sent, *parcels[i].arrived})
        all[end.trace].parcels.emplace(end.event,
                                       numbered_parcel{i + 1, &parcels[i]});
  return all;
}

std::string to_string(track_id track) {
  constexpr std::array<const char*, track_kinds> names{
    "start-up", "steps", "worker", "other threads", "in flight", "actor"};
  std::string name = names[static_cast<std::size_t>(track.kind)];
  if (track.kind == track_kind::worker || track.kind == track_kind::actor)
    return name + " " + std::to_string(track.number);
  return track.number == 0 ? name
                           : name + " " + std::to_string(track.number + 1);
}

std::string name_of(track_id track, const process_trace& in) {
  return track.kind == track_kind::actor
           ? "actor " + in.name_of_actor(track.number)
           : to_string(track);
}

std::string_view to_string(slice_kind kind) noexcept {
  constexpr std::array<std::string_view, slice_kinds> names{
    "phase", "step", "run", "help", "merge", "in flight", "handling"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(handling_result result) noexcept {
  constexpr std::array<std::string_view, handling_results> names{
    "handled", "skipped", "dropped", "failed"};
  return names[static_cast<std::size_t>(result)];
}

void build_slices(const traced_process& process, with_messages messages,
                  slice_sink& sink) {
  if (messages == with_messages::no)
    return slice_builder{process, nullptr, &sink}.build();
  // A message to a run that the trace lacks must not be shown where it was
  // sent. The first pass finds those that arrive.
  std::vector<bool> arrives(process.trace->events.size());
  slice_builder{process, &arrives, nullptr}.build();
  slice_builder{process, &arrives, &sink}.build();
}

} // namespace troupe::trace
