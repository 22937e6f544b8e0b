// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/step_metrics.hpp>

#include <cstdint>
#include <string>

namespace troupe::apps {

/// One line of JSON: {"step":0,"loss":2.1,"losses":[2.1,2.1],"ms":1.93,
/// "samples_per_s":8300}. A loss that is not finite becomes null.
std::string to_json_line(const step_metrics& metrics);

/// A file with exactly one line per step. `write` does not buffer, so that
/// other programs can follow the file.
class metrics_file {
public:
  /// Replaces a file of that name. If the process already has the file open for
  /// writing, as standard output or by a redirection of the shell, lines go to
  /// that descriptor, after other output. Throws error(io_failure).
  /// @param first_step of a run that continues another one: the lines of
  ///   earlier steps, which come first in the file, are kept
  /// @param line_before of step `first_step` - 1, which is added if the file
  ///   lacks it; empty: unknown
  explicit metrics_file(std::string path, std::uint64_t first_step = 0,
                        const std::string& line_before = {});

  ~metrics_file();
  metrics_file(const metrics_file&) = delete;
  metrics_file& operator=(const metrics_file&) = delete;

  /// Throws error(io_failure) if the disk is full. No part of the line is then
  /// in the file, unless other output goes there too.
  void write(const step_metrics& metrics);
  /// The same for a line that `to_json_line` has made.
  void write_line(const std::string& line);

private:
  std::string path_;
  int descriptor_;
  bool shared_;            ///< other output goes to the file too
  std::int64_t bytes_ = 0; ///< bytes of complete lines
};

} // namespace troupe::apps
