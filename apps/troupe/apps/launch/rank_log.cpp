// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/rank_log.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::size_t longest_line = std::size_t{1} << 20;
constexpr std::size_t longest_note = 400;

} // namespace

rank_log::rank_log(std::string path, start at)
  : path_(std::move(path)),
    file_(::open(path_.c_str(),
                 O_WRONLY | O_CREAT | O_CLOEXEC
                   | (at == start::empty ? O_TRUNC : O_APPEND),
                 0666)) {
  if (!file_)
    throw error(errc::io_failure, "cannot write " + one_line(path_) + ": "
                                    + std::strerror(errno));
}

void rank_log::add(std::string_view text) {
  while (!text.empty() && failure_ == 0) {
    const auto count = ::write(file_.get(), text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      failure_ = errno;
  }
}

rank_stream::rank_stream(descriptor from, passing how, std::string prefix,
                         output_stream& to, rank_log& log)
  : from_(std::move(from)), how_(how), prefix_(std::move(prefix)), to_(to),
    log_(log) {}

bool rank_stream::pass_some() {
  std::array<char, 65536> bytes;
  ssize_t count = 0;
  do
    count = ::read(from_.get(), bytes.data(), bytes.size());
  while (count < 0 && errno == EINTR);
  if (count > 0)
    take({bytes.data(), static_cast<std::size_t>(count)});
  else if (count == 0 || errno != EAGAIN)
    close();
  return count > 0;
}

void rank_stream::finish() {
  while (!is_closed() && pass_some())
    continue;
  close();
  if (how_ == passing::lines && !partial_.empty())
    emit(std::exchange(partial_, ""));
}

void rank_stream::take(std::string_view text) {
  if (how_ == passing::at_once)
    emit(text);
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    partial_ += text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    note({partial_.data(), partial_.size() - 1});
    if (how_ != passing::at_once)
      emit(partial_);
    partial_.clear();
  }
  partial_ += text;
  if (how_ != passing::lines && partial_.size() >= longest_line) {
    note(partial_);
    if (how_ == passing::prefixed_lines)
      emit(partial_ + "\n");
    partial_.clear();
  }
}

/// @param text for `passing::prefixed_lines` a whole line
void rank_stream::emit(std::string_view text) {
  log_.add(text);
  if (how_ == passing::prefixed_lines)
    to_.add(prefix_);
  to_.add(text);
}

void rank_stream::note(std::string_view line) {
  // These are no reasons why a rank ends. Lines of a flight recorder and of
  // traces can follow the reason. Links to a dashboard are secret.
  for (const auto begin :
       {"warning: ", "flight recorder: ", "the trace ", "a trace of level ",
        "dashboard, ", "dashboard of rank "})
    if (line.starts_with(begin))
      return;
  const auto last = line.find_last_not_of(" \t\r"); // ssh ends lines with "\r"
  if (last != line.npos)
    last_line_ = line.substr(0, std::min(last + 1, longest_note));
}

void rank_stream::close() {
  from_ = descriptor{};
  note(partial_);
  if (how_ == passing::prefixed_lines && !partial_.empty())
    emit(std::exchange(partial_, "") + "\n");
}

} // namespace troupe::apps
