// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <poll.h>

namespace troupe::apps {

/// Descriptors to wait for, and what is to be done when one is ready.
///
/// Thread rule: one thread.
class poll_list {
public:
  void add(int fd, short events, std::function<void()> act) {
    polled_.push_back({fd, events, 0});
    acts_.push_back(std::move(act));
  }

  /// @param milliseconds the longest wait; -1: for ever
  void wait(int milliseconds) {
    if (::poll(polled_.data(), polled_.size(), milliseconds) <= 0)
      return; // a timeout, or a signal, which the next call finds in its pipe
    for (std::size_t i = 0; i < polled_.size(); ++i)
      if (polled_[i].revents != 0)
        acts_[i]();
  }

private:
  std::vector<pollfd> polled_;
  std::vector<std::function<void()>> acts_;
};

} // namespace troupe::apps
