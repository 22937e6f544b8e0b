// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/trace_request.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr const char* desk_name = "troupe-trace-requests";
/// The link in /proc/PID/fd.
constexpr std::string_view desk_link = "/memfd:troupe-trace-requests (deleted)";

/// What the first byte of the memory says about the text behind it.
enum class desk_state : char { empty, asked, done, failed, given_up };

/// A path has at most PATH_MAX bytes.
constexpr std::size_t desk_bytes = 8192;
using desk_page = std::array<char, desk_bytes>;

/// The text is there before the byte that says so.
void write_desk(int memory, desk_state state, std::string_view text) {
  desk_page page{};
  text.copy(page.data(), page.size() - 2);
  (void)!::pwrite(memory, page.data(), page.size() - 1, 1);
  const auto byte = static_cast<char>(state);
  (void)!::pwrite(memory, &byte, 1, 0);
}

struct desk_content {
  desk_state state = desk_state::empty;
  std::string text = {};
};

desk_content read_desk(int memory) {
  desk_page page{};
  if (::pread(memory, page.data(), page.size(), 0)
      != static_cast<ssize_t>(page.size()))
    return {};
  return {
    static_cast<desk_state>(page.front()),
    std::string(page.data() + 1, ::strnlen(page.data() + 1, page.size() - 1))};
}

/// "start ops /tmp/a.trt", "start ops ", "stop".
std::string text_of(const trace_request& request) {
  if (!request.starts)
    return "stop";
  return "start " + std::string{to_string(request.level)} + " " + request.file;
}

std::optional<trace_request> parse_request(const std::string& text) {
  if (text == "stop")
    return trace_request{};
  constexpr std::string_view start = "start ";
  const auto space = text.find(' ', start.size());
  if (!text.starts_with(start) || space == std::string::npos)
    return std::nullopt;
  try {
    return trace_request{
      true, parse_trace_level(text.substr(start.size(), space - start.size())),
      text.substr(space + 1)};
  } catch (const error&) {
    return std::nullopt;
  }
}

} // namespace

trace_desk::trace_desk() : memory_(::memfd_create(desk_name, MFD_CLOEXEC)) {
  if (memory_)
    write_desk(memory_.get(), desk_state::empty, {});
}

std::optional<trace_request> trace_desk::take() {
  if (!memory_)
    return std::nullopt;
  const auto content = read_desk(memory_.get());
  return content.state == desk_state::asked ? parse_request(content.text)
                                            : std::nullopt;
}

bool trace_desk::was_given_up() {
  if (!memory_ || read_desk(memory_.get()).state != desk_state::given_up)
    return false;
  write_desk(memory_.get(), desk_state::empty, {});
  return true;
}

void trace_desk::answer(bool is_done, const std::string& text) {
  write_desk(memory_.get(), is_done ? desk_state::done : desk_state::failed,
             text);
}

// -- the process that asks ----------------------------------------------------

namespace {

constexpr const char* command_name = "troupe";

/// What /proc says about a process.
struct process_status {
  std::string name;
  uid_t user = 0; ///< the effective one
  bool catches_request = false;
};

/// Empty if the process has ended.
std::optional<process_status> status_of(const std::string& folder) {
  std::ifstream file{folder + "/status"};
  std::optional<process_status> found;
  for (std::string line; std::getline(file, line);) {
    if (!found)
      found.emplace();
    if (line.starts_with("Name:\t"))
      found->name = line.substr(6);
    else if (line.starts_with("Uid:\t")) // real, effective, ...
      found->user =
        static_cast<uid_t>(std::stoul(line.substr(line.find('\t', 5) + 1)));
    else if (line.starts_with("SigCgt:\t"))
      found->catches_request =
        (std::stoull(line.substr(8), nullptr, 16) >> (SIGUSR2 - 1) & 1) != 0;
  }
  return found;
}

descriptor open_desk(const std::string& folder) {
  std::error_code failure;
  for (std::filesystem::directory_iterator fd{folder + "/fd", failure}, end;
       !failure && fd != end; fd.increment(failure)) {
    std::error_code closed;
    if (std::filesystem::read_symlink(fd->path(), closed) == desk_link)
      return descriptor{::open(fd->path().c_str(), O_RDWR | O_CLOEXEC)};
  }
  return descriptor{};
}

[[noreturn]] void refuse(const std::string& process, const std::string& why) {
  throw error(errc::invalid_argument, process + why);
}

/// A process that is ours and has a desk. The checks are about the process of
/// the descriptor, also if its number is given to another one meanwhile: then
/// the signal does not arrive.
descriptor desk_of(const std::string& folder, const std::string& process) {
  const auto status = status_of(folder);
  if (!status)
    throw error(errc::not_found, "no " + process);
  if (status->user != ::geteuid())
    refuse(process, " is another user's");
  auto desk = open_desk(folder);
  if (desk && status->catches_request) // else the signal would end it
    return desk;
  if (status->name != command_name)
    refuse(process, " is not troupe but " + quoted_name(status->name));
  refuse(process, " traces nothing: only troupe train does, once it begins to "
                  "train, and the ranks of troupe launch");
}

std::string folder_of(pid_t process) {
  return "/proc/" + std::to_string(process);
}

bool takes_requests(pid_t process) {
  const auto folder = folder_of(process);
  const auto status = status_of(folder);
  return status && status->user == ::geteuid() && status->catches_request
         && open_desk(folder);
}

/// By parent: all processes that can be seen.
std::multimap<pid_t, pid_t> children_of_all() {
  std::multimap<pid_t, pid_t> found;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry{"/proc", failure}, end;
       !failure && entry != end; entry.increment(failure)) {
    const auto name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::ifstream file{entry->path() / "status"};
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("PPid:\t")) {
        found.emplace(std::stoi(line.substr(6)), std::stoi(name));
        break;
      }
  }
  return found;
}

bool has_ended(int process, std::chrono::milliseconds wait) {
  pollfd end{process, POLLIN, 0};
  return ::poll(&end, 1, static_cast<int>(wait.count())) > 0;
}

} // namespace

std::vector<pid_t> processes_to_ask(pid_t number) {
  const auto status = status_of(folder_of(number));
  if (!status || status->name != command_name || takes_requests(number))
    return {number};
  const auto children = children_of_all();
  std::vector<pid_t> family{number}, found;
  for (std::size_t i = 0; i < family.size(); ++i) {
    const auto [first, last] = children.equal_range(family[i]);
    for (auto child = first; child != last; ++child) {
      family.push_back(child->second);
      if (takes_requests(child->second))
        found.push_back(child->second);
    }
  }
  std::ranges::sort(found);
  return found.empty() ? std::vector{number} : found;
}

std::string ask_process(pid_t number, const trace_request& request,
                        std::chrono::seconds patience) {
  const auto process = "process " + std::to_string(number);
  const descriptor handle{
    static_cast<int>(::syscall(SYS_pidfd_open, number, 0))};
  if (!handle)
    throw error(errc::not_found, "no " + process + ": " + std::strerror(errno));
  const auto desk = desk_of(folder_of(number), process);
  if (::flock(desk.get(), LOCK_EX | LOCK_NB) != 0) // ends with this process
    refuse(process, " is asked by somebody else");
  write_desk(desk.get(), desk_state::asked, text_of(request));
  if (::syscall(SYS_pidfd_send_signal, handle.get(), SIGUSR2, nullptr, 0) != 0)
    // it has ended, and its memory ends with it
    throw error(errc::not_found, "no " + process + ": " + std::strerror(errno));
  constexpr std::chrono::milliseconds between_looks{5};
  const auto end = std::chrono::steady_clock::now() + patience;
  for (bool is_over = false; std::chrono::steady_clock::now() < end;) {
    const auto content = read_desk(desk.get());
    if (content.state == desk_state::done)
      return content.text;
    if (content.state == desk_state::failed)
      refuse(process, ": " + content.text);
    if (is_over)
      throw error(errc::io_failure, process + " has ended");
    is_over = has_ended(handle.get(), between_looks); // then looks once more
  }
  // The signal may still come.
  write_desk(desk.get(), desk_state::given_up, {});
  throw error(errc::io_failure, process + " has not answered for "
                                  + std::to_string(patience.count()) + " s");
}

} // namespace troupe::apps
