// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/remote_input.hpp>

#include <utility>

#include <sys/ioctl.h>

namespace troupe::apps {

remote_input::remote_input(descriptor to, const std::string& specification)
  : to_(std::move(to)), stream_(to_.get()) {
  stream_.add(specification);
}

bool remote_input::was_read() const {
  int unread = 0;
  return !is_waiting() && ::ioctl(to_.get(), FIONREAD, &unread) == 0
         && unread == 0;
}

void remote_input::send(int signal) {
  if (!to_)
    return;
  const char byte = static_cast<char>(signal);
  stream_.add({&byte, 1});
}

void remote_input::close() {
  const auto closed = std::move(to_);
}

} // namespace troupe::apps
