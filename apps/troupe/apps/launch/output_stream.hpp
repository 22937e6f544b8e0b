// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::apps {

/// A standard stream of the launcher, with what is still to be written. Writing
/// never waits for the reader: the launcher has to notice signals meanwhile.
///
/// Thread rule: one thread at a time.
class output_stream {
public:
  explicit output_stream(int fd) : fd_(fd) {}

  int fd() const noexcept { return fd_; }
  /// Adds text. If a write has failed, drops it.
  void add(std::string_view text);
  bool is_empty() const noexcept { return pending_.empty(); }
  /// True if whoever has more to add should wait.
  bool is_full() const noexcept;
  /// Writes a part. Does not wait if `poll` says that the stream is writable.
  void write_some();
  /// The error number of the write that failed, or 0.
  int failure() const noexcept { return failure_; }

private:
  int fd_;
  std::string pending_;
  std::size_t written_ = 0; ///< of `pending_`
  int failure_ = 0;
};

} // namespace troupe::apps
