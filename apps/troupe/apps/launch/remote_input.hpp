// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/launch/output_stream.hpp>
#include <troupe/base/descriptor.hpp>

#include <string>

namespace troupe::apps {

/// The launcher's end of the pipe to the input of `troupe launch-rank` on
/// another host. Through it go a rank_specification, and then one byte for each
/// signal. At its end, the rank there is told to end. No call waits.
///
/// Thread rule: one thread at a time.
class remote_input {
public:
  /// @param to the end of a pipe to which writing does not wait
  remote_input(descriptor to, const std::string& specification);

  int fd() const noexcept { return to_.get(); }
  /// True if bytes are left to be written.
  bool is_waiting() const noexcept { return to_ && !stream_.is_empty(); }
  /// True if the remote shell has read all: ssh does so once it has logged in.
  bool was_read() const;
  /// Writes a part. Call it if `poll` says that the pipe is writable.
  void write_some() { stream_.write_some(); }
  /// Passes on a signal after what is left to be written.
  void send(int signal);
  /// Closes the pipe, also if bytes are left.
  void close();

private:
  descriptor to_;
  output_stream stream_;
};

} // namespace troupe::apps
