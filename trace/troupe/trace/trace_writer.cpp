// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/trace_writer.hpp>

#include <troupe/base/clock_pair.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/target_path.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/trace/event_codec.hpp>
#include <troupe/trace/trace_tables.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>
#include <vector>

namespace troupe::trace {

namespace {

/// A block is small enough that a process that is killed loses little.
constexpr std::size_t events_per_block = std::size_t{1} << 12;

[[noreturn]] void refuse_place(const std::filesystem::path& path,
                               const std::string& why) {
  throw error(errc::io_failure, "cannot write " + path.string() + ": " + why);
}

[[noreturn]] void fail(const std::filesystem::path& path, int code = errno) {
  refuse_place(path, std::system_category().message(code));
}

bool may(const std::filesystem::path& path, int what) {
  return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0;
}

/// A device takes a write of nothing if it takes anything. To a file, that
/// would say nothing.
void require_open_device(const std::filesystem::path& path) {
  const descriptor device{
    ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)};
  if (!device || ::write(device.get(), "", 0) < 0)
    fail(path);
}

/// Where nothing is yet.
void require_folder_of(const std::filesystem::path& path) {
  const auto folder = folder_of(resolve_target(path));
  struct stat there {};
  if (::stat(folder.c_str(), &there) != 0 && errno == ENOENT)
    refuse_place(path, "there is no folder " + folder.string());
  if (!path.has_filename())
    fail(path, EISDIR);
  if (!may(folder, W_OK | X_OK))
    fail(path);
}

} // namespace

void require_trace_place(const std::filesystem::path& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0)
    return errno == ENOENT ? require_folder_of(path) : fail(path);
  if (S_ISDIR(there.st_mode))
    fail(path, EISDIR);
  if (S_ISCHR(there.st_mode))
    return require_open_device(path);
  if (!S_ISREG(there.st_mode) && !S_ISFIFO(there.st_mode))
    refuse_place(path, "not a file");
  if (!may(path, W_OK))
    fail(path);
}

clock_reading clock_reading::now() noexcept {
  const auto now = read_together(troupe::ticks, now_ns);
  return {now.outer, now.inner};
}

trace_writer::trace_writer(const std::filesystem::path& path, existing file)
  : path_(path) {
  if (file == existing::replaced)
    require_trace_place(path);
  file_ = descriptor{::open(path.c_str(),
                            O_WRONLY | O_CREAT | O_CLOEXEC
                              | (file == existing::replaced ? O_TRUNC : O_EXCL),
                            0666)};
  if (!file_)
    fail(path_);
  const file_head head;
  put({reinterpret_cast<const char*>(&head), sizeof head});
}

void trace_writer::put(std::string_view block) {
  while (!block.empty()) {
    const auto written = ::write(file_.get(), block.data(), block.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail(path_);
    bytes_ += static_cast<std::uint64_t>(written);
    block.remove_prefix(static_cast<std::size_t>(written));
  }
}

void trace_writer::write(const run_info& run) {
  put(make_block(block_kind::run, to_json(run)));
}

void trace_writer::write(const graph_info& graph) {
  put(make_block(block_kind::graph, to_json(graph)));
}

void trace_writer::write(std::span<const phase> phases) {
  put(make_block(block_kind::phases, to_json(phases)));
}

void trace_writer::write(std::span<const worker_stack> stacks) {
  put(make_block(block_kind::stacks, to_json(stacks)));
}

void trace_writer::write(const actor_table::changes& found,
                         std::uint64_t begin_ns) {
  if (!found.empty())
    put(make_block(block_kind::actors, to_json(found, begin_ns)));
}

/// Writes blocks of at most `events_per_block`.
void trace_writer::put_events(block_kind kind,
                              std::span<const trace_event> events,
                              const events_head& like) {
  auto head = like;
  do {
    const auto part = events.first(std::min(events.size(), events_per_block));
    events = events.subspan(part.size());
    head.count = part.size();
    payload_.resize(sizeof head);
    std::memcpy(payload_.data(), &head, sizeof head);
    encode_events(part, head.first_ticks, payload_);
    put(make_block(kind, payload_));
    head.lost = 0;
  } while (!events.empty());
}

void trace_writer::write(std::span<const trace_event> events,
                         std::uint64_t lost, const clock_reading& first,
                         const clock_reading& last, std::uint64_t begin_ns) {
  events_head head{0,
                   lost,
                   first.ticks,
                   last.ticks,
                   static_cast<std::int64_t>(first.ns - begin_ns),
                   static_cast<std::int64_t>(last.ns - begin_ns)};
  const auto is_actors = [](const trace_event& e) {
    return is_of_actor(e.kind);
  };
  if (std::ranges::none_of(events, is_actors))
    return put_events(block_kind::events, events, head);
  std::vector<trace_event> of_actors, others;
  std::ranges::copy_if(events, std::back_inserter(of_actors), is_actors);
  std::ranges::remove_copy_if(events, std::back_inserter(others), is_actors);
  put_events(block_kind::events, others, head);
  head.lost = 0;
  put_events(block_kind::actor_events, of_actors, head);
}

void trace_writer::close() {
  put(make_block(block_kind::end, {}));
  file_ = descriptor{};
}

} // namespace troupe::trace
