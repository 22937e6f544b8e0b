// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/guardian.hpp>

#include <troupe/base/error.hpp>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

/// Lets go of all that belongs to the launcher: its group, its folder, its
/// files. One of these is the other end of the pipe.
void detach(int told) {
  sigset_t all = {};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::dup2(told, 0);
  ::close_range(1, UINT_MAX, 0);
  (void)!::chdir("/");
  ::prctl(PR_SET_NAME, "troupe-guard");
}

/// True if the launcher says that all is done; false if it has ended.
bool is_dismissed() {
  char byte = 0;
  ssize_t got = 0;
  do
    got = ::read(0, &byte, 1);
  while (got < 0 && errno == EINTR);
  return got == 1;
}

[[noreturn]] void guard(int told, const std::vector<pid_t>& groups,
                        const std::string& folder) {
  detach(told);
  if (is_dismissed())
    ::_exit(0);
  for (const pid_t group : groups)
    ::kill(-group, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  ::_exit(0);
}

} // namespace

guardian::guardian(const std::vector<pid_t>& groups,
                   const std::string& folder) {
  int ends[2];
  const bool has_pipe = ::pipe2(ends, O_CLOEXEC) == 0;
  const descriptor told{has_pipe ? ends[0] : -1};
  tell_ = descriptor{has_pipe ? ends[1] : -1};
  if (has_pipe)
    id_ = ::fork();
  if (id_ == 0)
    guard(told.get(), groups, folder);
  if (id_ < 0)
    throw error(errc::io_failure, std::string("no process to guard the ranks: ")
                                    + std::strerror(errno));
}

guardian::~guardian() {
  (void)!::write(tell_.get(), "", 1);
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR)
    continue;
}

} // namespace troupe::apps
