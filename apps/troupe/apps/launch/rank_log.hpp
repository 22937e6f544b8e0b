// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/launch/output_stream.hpp>
#include <troupe/base/files/descriptor.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::apps {

/// The file with everything that a rank has printed. A line of its standard
/// output and one of its standard error are not mixed.
///
/// Thread rule: one thread at a time.
class rank_log {
public:
  enum class start { empty, after_the_old };

  /// Creates the file; empties it, or keeps what is there. Throws
  /// error(io_failure).
  explicit rank_log(std::string path, start at = start::empty);

  const std::string& path() const noexcept { return path_; }
  /// Appends text. After a failure does nothing.
  void add(std::string_view text);
  /// The error number of the write that failed, or 0.
  int failure() const noexcept { return failure_; }

private:
  std::string path_;
  descriptor file_;
  int failure_ = 0;
};

/// How the output of a rank is passed on.
enum class passing {
  /// As it comes: it is the only rank.
  at_once,
  /// Whole lines, unchanged. What follows the last line comes at the end.
  lines,
  /// Whole lines, each behind a prefix. A line of more than 1 MiB is cut into
  /// several.
  prefixed_lines,
};

/// Passes on what a rank prints to its standard output or error.
///
/// Thread rule: one thread at a time.
class rank_stream {
public:
  /// @param from the end of a pipe from which reading does not wait
  /// @param prefix for `passing::prefixed_lines`
  rank_stream(descriptor from, passing how, std::string prefix,
              output_stream& to, rank_log& log);

  int fd() const noexcept { return from_.get(); }
  const output_stream& target() const noexcept { return to_; }
  /// True if no more will come.
  bool is_closed() const noexcept { return !from_; }
  /// Passes on a part of what has arrived. Does not wait. False if there was
  /// nothing.
  bool pass_some();
  /// Passes on all that has arrived, and closes the pipe.
  void finish();
  /// The last line that is not empty, no warning and no note of a flight
  /// recorder or a trace; at most 400 bytes of it.
  const std::string& last_line() const noexcept { return last_line_; }

private:
  void take(std::string_view text);
  void emit(std::string_view text);
  void note(std::string_view line);
  void close();

  descriptor from_;
  passing how_;
  std::string prefix_;
  output_stream& to_;
  rank_log& log_;
  std::string partial_; ///< the begin of a line
  std::string last_line_;
};

} // namespace troupe::apps
