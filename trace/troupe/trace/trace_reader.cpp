// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/trace_reader.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/trace/event_codec.hpp>
#include <troupe/trace/trace_format.hpp>
#include <troupe/trace/trace_tables.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

namespace troupe::trace {

namespace {

class file_reader {
public:
  explicit file_reader(const std::filesystem::path& path) : file_(path) {
    made_.run.level = trace_level::off; // until the file says which
  }

  process_trace read();

private:
  void read_head();
  bool read_block();
  void take(block_kind kind, std::string_view payload);
  void take_events(std::string_view payload);
  void reserve(std::size_t count, std::size_t bytes);

  input_file file_;
  process_trace made_;
  bool has_graph_ = false;
};

[[noreturn]] void refuse(const input_file& file, const std::string& why) {
  throw error(errc::bad_file, file.path().string() + ": " + why);
}

void file_reader::read_head() {
  file_head head;
  if (file_.remaining() < sizeof head)
    refuse(file_, "not a trace of Troupe");
  file_.read(&head, sizeof head);
  if (head.magic != file_magic)
    refuse(file_, "not a trace of Troupe");
  if (head.version > format_version)
    refuse(file_, "a trace of a newer version of Troupe (format "
                    + std::to_string(head.version) + ", this one reads up to "
                    + std::to_string(format_version) + ")");
}

/// False if what follows is no whole block.
bool file_reader::read_block() {
  block_head head;
  if (file_.remaining() < sizeof head)
    return false;
  file_.read(&head, sizeof head);
  if (head.bytes > most_block_bytes || head.bytes > file_.remaining())
    return false;
  const auto payload = file_.read_string(head.bytes);
  fingerprint sum;
  sum.add(payload);
  if (sum.value() != head.checksum)
    return false;
  take(head.kind, payload);
  return true;
}

void file_reader::take(block_kind kind, std::string_view payload) {
  switch (kind) {
  case block_kind::run: made_.run = parse_run(payload); return;
  case block_kind::graph:
    made_.graph = parse_graph(payload);
    has_graph_ = true;
    return;
  case block_kind::phases:
    for (auto& p : parse_phases(payload))
      made_.phases.push_back(std::move(p));
    return;
  case block_kind::actors:
    return parse_actors(payload, made_.actors, made_.message_types);
  case block_kind::events:
  case block_kind::actor_events: return take_events(payload);
  case block_kind::end: made_.is_complete = true; return;
  case block_kind::stacks:
    for (auto& s : parse_stacks(payload, made_.graph.handles.size()))
      made_.stacks.push_back(std::move(s));
    return;
  }
  // of a later version of Troupe
}

/// Turns ticks into nanoseconds.
class tick_clock {
public:
  explicit tick_clock(const events_head& head)
    : head_(head),
      ns_per_tick_(
        head.last_ticks > head.first_ticks
          ? static_cast<double>(head.last_ns - head.first_ns)
              / static_cast<double>(head.last_ticks - head.first_ticks)
          : 1.0) {}

  std::uint64_t ns(std::uint64_t ticks) const {
    const auto since = static_cast<std::int64_t>(ticks - head_.first_ticks);
    // A damaged file can have any numbers.
    constexpr double most = 4e18;
    const auto passed =
      std::clamp(static_cast<double>(since) * ns_per_tick_, -most, most);
    const auto ns = head_.first_ns + static_cast<std::int64_t>(passed);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
  }

private:
  const events_head& head_;
  double ns_per_tick_;
};

bool is_earlier(const trace_event& a, const trace_event& b) {
  return a.time < b.time;
}

/// A block's events are nearly in order, and overlap with few of earlier
/// blocks: sorting all events would take much longer.
void put_in_order(std::vector<trace_event>& all, std::ptrdiff_t before) {
  const auto block = all.begin() + before;
  if (!std::is_sorted(block, all.end(), is_earlier))
    std::stable_sort(block, all.end(), is_earlier);
  if (block == all.begin() || block == all.end()
      || !is_earlier(*block, *(block - 1)))
    return;
  const auto overlap = std::upper_bound(all.begin(), block, *block, is_earlier);
  std::inplace_merge(overlap, block, all.end(), is_earlier);
}

/// Makes room for a block's events and, guessing by what it has per byte, for
/// those of the rest of the file. Growing step by step would take up to twice
/// the memory.
void file_reader::reserve(std::size_t count, std::size_t bytes) {
  auto& all = made_.events;
  if (all.capacity() - all.size() >= count)
    return;
  const auto per_byte =
    static_cast<double>(count) / static_cast<double>(std::max(bytes, count));
  const auto rest = per_byte * static_cast<double>(file_.remaining());
  constexpr double slack = 1.03;
  all.reserve(all.size() + count + static_cast<std::size_t>(slack * rest));
}

void file_reader::take_events(std::string_view payload) {
  events_head head;
  if (payload.size() < sizeof head)
    throw error(errc::bad_file, "a block of events is cut short");
  std::memcpy(&head, payload.data(), sizeof head);
  payload.remove_prefix(sizeof head);
  constexpr std::int64_t most_ns = std::int64_t{1} << 61; // 70 years
  if (head.first_ns < -most_ns || head.first_ns > head.last_ns
      || head.last_ns > most_ns)
    throw error(errc::bad_file, "a block of events has impossible times");
  if (head.count > payload.size())
    throw error(errc::bad_file, "a block of events has an impossible number");
  auto& all = made_.events;
  const auto before = std::ssize(all);
  reserve(head.count, payload.size());
  try {
    decode_events(payload, head.count, head.first_ticks, all);
  } catch (const error&) {
    all.resize(static_cast<std::size_t>(before));
    throw;
  }
  made_.lost += head.lost;
  const tick_clock clock{head};
  for (auto e = all.begin() + before; e != all.end(); ++e)
    e->time = clock.ns(e->time);
  put_in_order(all, before);
}

process_trace file_reader::read() {
  made_.file = file_.path().string();
  read_head();
  auto unread = file_.remaining();
  try {
    while (read_block())
      unread = file_.remaining();
  } catch (const error& e) {
    if (e.code() != errc::bad_file)
      throw;
    if (!has_graph_)
      refuse(file_, "its graph is damaged: " + e.message());
  }
  made_.unread_bytes = unread;
  if (!has_graph_ && !made_.events.empty())
    refuse(file_, "has events, but no graph whose events they are");
  made_.is_complete = made_.is_complete && unread == 0;
  return std::move(made_);
}

} // namespace

process_trace read_trace(const std::filesystem::path& path) {
  return file_reader{path}.read();
}

} // namespace troupe::trace
