// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/hosts/remote_shell.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

/// As one word of a shell.
std::string quoted_for_shell(const std::string& word) {
  const auto is_safe = [](unsigned char c) {
    return std::isalnum(c) != 0
           || std::string_view("/._-+").find(static_cast<char>(c))
                != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_safe))
    return word;
  std::string quoted = "'";
  for (const char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

} // namespace

rank_pipe::rank_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw error(errc::io_failure,
                std::string("no pipe for a rank: ") + std::strerror(errno));
  read = descriptor{ends[0]};
  write = descriptor{ends[1]};
}

void never_wait_at(const descriptor& end) {
  ::fcntl(end.get(), F_SETFL, O_NONBLOCK);
}

std::vector<std::string>
remote_words(const remote_start& remote, const job_host& host,
             const std::vector<std::string>& subcommand) {
  auto words = remote.shell;
  words.push_back(host.destination);
  auto command = quoted_for_shell(remote.program);
  for (const auto& word : subcommand)
    command += " " + quoted_for_shell(word);
  words.push_back(command);
  return words;
}

remote_input::remote_input(descriptor to, const std::string& first)
  : to_(std::move(to)), stream_(to_.get()) {
  stream_.add(first);
}

bool remote_input::was_read() const {
  int unread = 0;
  return !is_waiting() && ::ioctl(to_.get(), FIONREAD, &unread) == 0
         && unread == 0;
}

void remote_input::send(int signal) {
  send(std::string(1, static_cast<char>(signal)));
}

void remote_input::send(const std::string& bytes) {
  if (to_)
    stream_.add(bytes);
}

void remote_input::close() {
  const auto closed = std::move(to_);
}

} // namespace troupe::apps
