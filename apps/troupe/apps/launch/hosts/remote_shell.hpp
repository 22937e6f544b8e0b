// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/launch/job.hpp>
#include <troupe/apps/launch/output_stream.hpp>
#include <troupe/base/files/descriptor.hpp>

#include <string>
#include <vector>

namespace troupe::apps {

/// A pipe whose ends are closed on exec. Throws error(io_failure).
struct rank_pipe {
  descriptor read;
  descriptor write;

  rank_pipe();
};

/// For the launcher's end of a pipe.
void never_wait_at(const descriptor& end);

/// The words of a remote shell that runs troupe on a host.
/// @param subcommand with its options
std::vector<std::string>
remote_words(const remote_start& remote, const job_host& host,
             const std::vector<std::string>& subcommand);

/// The launcher's end of the pipe to the input of `troupe launch-rank` or
/// `troupe launch-host` on another host. To the first go a rank_specification,
/// and then one byte for each signal; to the other what host_message.hpp says.
/// At its end, the process there has to end. No call waits.
///
/// Thread rule: one thread at a time.
class remote_input {
public:
  /// @param to the end of a pipe to which writing does not wait
  remote_input(descriptor to, const std::string& first);

  int fd() const noexcept { return to_.get(); }
  /// True if bytes are left to be written.
  bool is_waiting() const noexcept { return to_ && !stream_.is_empty(); }
  /// True if the remote shell has read all: ssh does so once it has logged in.
  bool was_read() const;
  /// Writes a part. Call it if `poll` says that the pipe is writable.
  void write_some() { stream_.write_some(); }
  /// Passes on a signal after what is left to be written.
  void send(int signal);
  /// The same with bytes.
  void send(const std::string& bytes);
  /// Closes the pipe, also if bytes are left.
  void close();

private:
  descriptor to_;
  output_stream stream_;
};

} // namespace troupe::apps
