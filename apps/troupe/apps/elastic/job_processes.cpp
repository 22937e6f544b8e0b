// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/job_processes.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::string_view process_prefix = "process-";

std::string process_file(const std::string& folder, std::uint64_t number) {
  return folder + "/" + std::string(process_prefix) + std::to_string(number);
}

std::optional<std::uint64_t> number_in(std::string_view name) {
  if (!name.starts_with(process_prefix))
    return std::nullopt;
  name.remove_prefix(process_prefix.size());
  std::uint64_t number = 0;
  const auto read =
    std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number =
    read.ec == std::errc{} && read.ptr == name.data() + name.size();
  return is_number ? std::optional{number} : std::nullopt;
}

[[noreturn]] void fail_to_enter(const std::string& folder, int why) {
  throw error(errc::io_failure, "cannot take a number in " + folder + ": "
                                  + std::system_category().message(why));
}

/// A file with the process's number in the system, which this process has
/// locked.
descriptor make_locked(const std::string& path) {
  descriptor made{
    ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  const auto text = std::to_string(::getpid());
  if (!made || ::flock(made.get(), LOCK_EX) != 0
      || ::write(made.get(), text.data(), text.size())
           != static_cast<ssize_t>(text.size()))
    fail_to_enter(path, errno);
  return made;
}

} // namespace

/// The file gets its name when it is locked: nobody takes the process for one
/// that has ended.
job_processes::job_processes(std::string folder, std::uint64_t wanted,
                             std::uint64_t next)
  : folder_(std::move(folder)), own_(wanted) {
  const auto begin = folder_ + "/begin-" + std::to_string(::getpid());
  ::unlink(begin.c_str()); // of an earlier process with this number
  lock_ = make_locked(begin);
  while (::link(begin.c_str(), process_file(folder_, own_).c_str()) != 0) {
    if (errno != EEXIST)
      fail_to_enter(folder_, errno);
    own_ = own_ == wanted && next != wanted ? next : own_ + 1;
  }
  ::unlink(begin.c_str());
}

std::vector<std::uint64_t> job_processes::living() const {
  auto numbers = all();
  std::erase_if(numbers, [this](auto number) { return !lives(number); });
  return numbers;
}

std::vector<std::uint64_t> job_processes::all() const {
  std::vector<std::uint64_t> numbers;
  std::error_code ignored;
  for (auto& entry : std::filesystem::directory_iterator(folder_, ignored))
    if (const auto number = number_in(entry.path().filename().string()))
      numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
}

/// Locks of files that this process opens once more are not its own.
bool job_processes::lives(std::uint64_t number) const {
  const descriptor file{::open(process_file(folder_, number).c_str(),
                               O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0
         && errno == EWOULDBLOCK;
}

bool job_processes::knows(std::uint64_t number) const {
  std::error_code ignored;
  return std::filesystem::exists(process_file(folder_, number), ignored);
}

/// The system may have given its number to another process. That one has no
/// lock, and a process that had it at the second look had it at the first.
void job_processes::kill(std::uint64_t number) const {
  pid_t process = 0;
  std::ifstream in{process_file(folder_, number)};
  if (!(in >> process) || process <= 0)
    return;
  const descriptor handle{
    static_cast<int>(::syscall(SYS_pidfd_open, process, 0))};
  if (handle && lives(number))
    ::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
}

} // namespace troupe::apps
