// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace troupe::apps {

/// What one step gave, as the metrics file tells it.
struct step_metrics {
  std::uint64_t step = 0;
  double loss = 0;                     ///< sample-weighted mean over devices
  std::span<const double> losses = {}; ///< per device
  double ms = 0; ///< since the step before ended, or its own start
  double samples_per_s = 0;
};

/// One line of JSON: {"step":0,"loss":2.1,"losses":[2.1,2.1],"ms":1.93,
/// "samples_per_s":8300}. A loss that is not finite becomes null.
std::string to_json_line(const step_metrics& metrics);

/// A file with exactly one line per step, each on disk when `write` returns,
/// so that others can follow it.
class metrics_file {
public:
  /// Replaces a file of that name. If the process has the file open for
  /// writing, as standard output or by a redirection of the shell, lines are
  /// appended to what is written there. Throws error(io_failure).
  explicit metrics_file(std::string path);

  ~metrics_file();
  metrics_file(const metrics_file&) = delete;
  metrics_file& operator=(const metrics_file&) = delete;

  /// Throws error(io_failure) when the disk is full; no part of the line is in
  /// the file then, unless others write there, too.
  void write(const step_metrics& metrics);

private:
  std::string path_;
  int descriptor_;
  bool shared_;            ///< with what else is written there
  std::int64_t bytes_ = 0; ///< of whole lines
};

} // namespace troupe::apps
