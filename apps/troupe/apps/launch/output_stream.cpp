// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/output_stream.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>

#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::size_t full_bytes = std::size_t{1} << 20;

} // namespace

void output_stream::add(std::string_view text) {
  if (failure_ == 0)
    pending_ += text;
}

bool output_stream::is_full() const noexcept {
  return pending_.size() - written_ >= full_bytes;
}

void output_stream::write_some() {
  // A pipe that is writable takes as many bytes without a wait.
  const auto bytes =
    std::min<std::size_t>(pending_.size() - written_, PIPE_BUF);
  const auto count = ::write(fd_, pending_.data() + written_, bytes);
  if (count >= 0)
    written_ += static_cast<std::size_t>(count);
  else if (errno != EINTR && errno != EAGAIN)
    failure_ = errno;
  if (failure_ != 0 || written_ == pending_.size()) {
    pending_.clear();
    written_ = 0;
  } else if (written_ >= full_bytes) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

} // namespace troupe::apps
